package ddb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a request may go on whose caller's context has ended.
const (
	// Cleanup is for requests that give back what a call took: all of them
	// together, with whatever settles them.
	Cleanup = 3 * time.Second
	// Settle is for one that takes something; see Options.AwaitAnswer.
	Settle = time.Second
	// settleFor is for the one detached attempt that finds out whether a write
	// was applied.
	settleFor = 3 * time.Second
)

// Join says on one line what happened and why: both can be asked for with
// errors.Is. Either may be nil.
func Join(what, why error) error {
	switch {
	case what == nil:
		return why
	case why == nil:
		return what
	}
	return fmt.Errorf("%w: %w", what, why)
}

// Waited says of the end of a context for how long the call had waited.
func Waited(d time.Duration, end error) error {
	return fmt.Errorf("waited for %v: %w", d.Round(time.Millisecond), end)
}

// DetachedTimeout keeps the values of a context but not its end. It is for giving back
// what a call took that has failed.
//
// All that is given back on it, or under it, has [Cleanup].
func DetachedTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if cleans(ctx) {
		return ctx, func() {}
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), cleaningKey{}, gone)
	return context.WithTimeout(ctx, Cleanup)
}

// Cleaning is a context for giving something back whose caller's context may
// have ended, or end in the middle: it lives for Cleanup longer, and that is
// all. One of these under another has no time of its own. A write is not settled
// by a request after its end, as others are: there is time for that before it,
// since an attempt that its caller has left lasts half of Cleanup at most.
//
// Its cause says in words why ctx has ended: that something else was lost, or released, is
// no verdict on what is given back, and must not be taken for one.
func Cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil || cleans(ctx) {
		return ctx, func() {}
	}
	return grace{Cleanup, inWords}.after(context.WithValue(ctx, cleaningKey{}, ctx))
}

// CleanUp gives something back behind a call. Where the call has used up its time it
// goes on beside it, for Cleanup at most: the caller waits no longer.
func CleanUp(ctx context.Context, release func(context.Context)) {
	if ctx.Err() == nil {
		release(ctx)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), Cleanup)
	go func() {
		defer cancel()
		release(ctx)
	}()
}

// cleaningKey is where a context for giving back has the context of its caller.
type cleaningKey struct{}

func cleans(ctx context.Context) bool { return ctx.Value(cleaningKey{}) != nil }

// gone is a context that has ended.
var gone = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// hurry ends one attempt, whose context is ctx, half of Cleanup after its caller
// has left: another one must fit into what remains.
func hurry(ctx context.Context, end context.CancelFunc) (stop func() bool) {
	caller, ok := ctx.Value(cleaningKey{}).(context.Context)
	if !ok {
		return func() bool { return true }
	}
	return context.AfterFunc(caller, func() {
		Sleep(ctx, Cleanup/2)
		end()
	})
}

// Merge ends with ctx, and, with its cause, with other. Where both have ended before
// anybody looked, it has ended with ctx.
func Merge(ctx, other context.Context) (context.Context, context.CancelFunc) {
	return While(ctx, lasting{other})
}

// While ends with ctx, and, with its cause, with what is held: Merge that costs what is
// held a context only if somebody waits for the end.
func While(ctx context.Context, held Lasting) (context.Context, context.CancelFunc) {
	return newLazy(ctx, merged{held})
}

// Lasting is what a context can end with.
type Lasting interface {
	// Cause is why it is over; nil while it goes on.
	Cause() error
	// Context ends with it, with that cause.
	Context() context.Context
}

type lasting struct{ ctx context.Context }

func (l lasting) Cause() error             { return context.Cause(l.ctx) }
func (l lasting) Context() context.Context { return l.ctx }

// merged is the end of one context and of something else.
type merged struct{ other Lasting }

func (m merged) near(ctx context.Context) bool { return ctx.Err() != nil || m.other.Cause() != nil }

func (m merged) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	if cause := m.other.Cause(); cause != nil {
		cancel(cause)
		return both, func() {}
	}
	other := m.other.Context()
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return both, func() { stop(); cancel(nil) }
}

func (m merged) deadline(ctx context.Context) (time.Time, bool) { return ctx.Deadline() }

// WithGrace is a context that lives longer than ctx, whether that has ended
// already or ends in the middle: for a request whose answer matters although
// nobody waits for it any more.
func WithGrace(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	return grace{by, CtxError}.after(ctx)
}

// withGrace is WithGrace for one request, all of whose attempts are made, one after the
// other, with withTimeout: so somebody notices at once that the caller has left, which
// is when the grace begins.
func withGrace(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return WithGrace(ctx, by)
	}
	return newLazy(ctx, grace{by, CtxError})
}

// grace is a while after the end of a context, and how that end is told.
type grace struct {
	by    time.Duration
	cause func(ended context.Context) error
}

func (g grace) after(ctx context.Context) (context.Context, context.CancelFunc) {
	switch {
	case ctx.Done() == nil:
		return ctx, func() {}
	case ctx.Err() != nil:
		return context.WithTimeoutCause(context.WithoutCancel(ctx), g.by, g.cause(ctx))
	}
	return g.watch(ctx)
}

func (g grace) near(ctx context.Context) bool { return ctx.Err() != nil }

func (g grace) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		Sleep(longer, g.by)
		cancel(g.cause(ctx))
	})
	return longer, func() { stop(); cancel(nil) }
}

func (g grace) deadline(context.Context) (time.Time, bool) { return time.Time{}, false }

// withTimeout is [context.WithTimeout]. Of a context with grace that nobody waits for it
// makes one context instead of two: that one is asked only when its caller has left.
func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	g, ok := ctx.(*lazy[grace])
	if !ok || g.watched.Load() != nil {
		return context.WithTimeout(ctx, d)
	}
	timed, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	stop := context.AfterFunc(g.Context, func() {
		select {
		case <-g.Done():
		case <-timed.Done():
		}
		cancel()
	})
	return timed, func() { stop(); cancel() }
}

// CtxError is the error of a context that is done, joined with its cause where
// somebody gave one.
func CtxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return Join(err, cause)
}

// inWords is CtxError which is the cause in words only.
func inWords(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return ctx.Err()
	}
	return fmt.Errorf("%w: %v", ctx.Err(), cause) //nolint:errorlint // in words
}

// ClockLook is how often a clock that may jump is looked at by whoever waits for a
// time on it: nothing tells that it has jumped.
const ClockLook = 10 * time.Millisecond

// Signal leaves word in a channel that has room for one, unless one is there already.
func Signal(news chan<- struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}

// Sleep waits for d or until ctx is done, whichever is first.
func Sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

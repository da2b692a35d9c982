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
	// Settle is for one that takes something; see Options.Taking.
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
func Cleaning(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil || cleans(ctx) {
		return ctx, func() {}
	}
	return WithGrace(context.WithValue(ctx, cleaningKey{}, ctx), Cleanup)
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

// Merge ends with ctx, and, with its cause, with other.
func Merge(ctx, other context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return both, func() { stop(); cancel(nil) }
}

// WithGrace is a context that lives longer than ctx, whether that has ended
// already or ends in the middle: for a request whose answer matters although
// nobody waits for it any more.
func WithGrace(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case ctx.Done() == nil:
		return ctx, func() {}
	case ctx.Err() != nil:
		return context.WithTimeoutCause(context.WithoutCancel(ctx), by, CtxError(ctx))
	}
	longer, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		Sleep(longer, by)
		cancel(CtxError(ctx))
	})
	return longer, func() { stop(); cancel(nil) }
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

// ClockLook is how often a clock that may jump is looked at by whoever waits for a
// time on it: nothing tells that it has jumped.
const ClockLook = 10 * time.Millisecond

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

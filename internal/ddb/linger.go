package ddb

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// How long a request may go on whose caller's context has ended.
const (
	// Cleanup is for requests that give back what a call took.
	Cleanup = 3 * time.Second
	// Settle is for one that takes something; see Options.Taking.
	Settle = time.Second
	// settleFor is for the one detached attempt that finds out whether a write
	// was applied.
	settleFor = 3 * time.Second
)

// Because says on one line what happened and why: both can be asked for with
// errors.Is. Either may be nil.
func Because(what, why error) error {
	switch {
	case what == nil:
		return why
	case why == nil:
		return what
	}
	return fmt.Errorf("%w: %w", what, why)
}

// Detached keeps the values of a context but not its end. It is for giving back
// what a call took that has failed.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), Cleanup)
}

// Both ends with ctx, and, with its cause, with other.
func Both(ctx, other context.Context) (context.Context, context.CancelFunc) {
	both, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return both, func() { stop(); cancel(nil) }
}

// Lingering is a context that lives longer than ctx, whether that has ended
// already or ends in the middle: for a request whose answer matters although
// nobody waits for it any more.
func Lingering(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case ctx.Done() == nil:
		return ctx, func() {}
	case ctx.Err() != nil:
		return context.WithTimeout(context.WithoutCancel(ctx), by)
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		Pause(longer, by)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

// CtxError is the error of a context that is done, joined with its cause where
// somebody gave one.
func CtxError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || errors.Is(cause, err) {
		return cause
	}
	return Because(err, cause)
}

// Pause waits for d or until ctx is done, whichever is first.
func Pause(ctx context.Context, d time.Duration) {
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

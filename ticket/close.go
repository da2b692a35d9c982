package ticket

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
)

// LeaveError is a ticket that Close could not take out of its queue.
type LeaveError struct {
	Entity string
	Number int64
	Err    error
}

func (e *LeaveError) Error() string {
	return fmt.Sprintf("ticket %d of %q was not taken out: %v", e.Number, e.Entity, e.Err)
}

// Unwrap gives the reason.
func (e *LeaveError) Unwrap() error { return e.Err }

// Close ends all waiting with ErrClosed, and takes every ticket that was drawn
// by this Queue out of its queue, as long as ctx allows: the contexts of turns
// end, with the cause ErrClosed, before their locks are free. The error joins
// one *LeaveError for each ticket that could not be taken out; that is passed
// over after its lease. More calls do nothing.
func (q *Queue) Close(ctx context.Context) error {
	if !q.gate.Close() {
		return nil
	}
	q.cancel(ErrClosed)
	// Requests to join end now and clean up after themselves.
	late := q.gate.Wait(ctx)
	if late != nil {
		late = fmt.Errorf("requests to join are still under way: %w", late)
	}
	q.mu.Lock()
	all := slices.Collect(maps.Keys(q.tickets))
	q.mu.Unlock()
	return errors.Join(append(lease.Each(all, func(t *Ticket) error {
		t.lease.Forget(ErrClosed)
		err := ctx.Err()
		if err == nil {
			err = t.end(ctx, ErrClosed)
		}
		if err == nil || errors.Is(err, ErrClosed) {
			return nil
		}
		return &LeaveError{Entity: t.entity, Number: t.number, Err: err}
	}), late)...)
}

// begin registers a request to join; its context ends also with Close. The
// caller calls the returned function when it is over.
func (q *Queue) begin(ctx context.Context) (context.Context, func(), error) {
	if !q.gate.Enter() {
		return nil, nil, ErrClosed
	}
	ctx, cancel := ddb.Merge(ctx, q.ctx)
	return ctx, func() { cancel(); q.gate.Leave() }, nil
}

// keep lists a ticket for Close.
func (q *Queue) keep(t *Ticket) {
	q.mu.Lock()
	q.tickets[t] = struct{}{}
	q.mu.Unlock()
	context.AfterFunc(t.lease.Context(), func() {
		q.mu.Lock()
		delete(q.tickets, t)
		q.mu.Unlock()
	})
}

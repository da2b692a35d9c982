package ticket

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// closers bounds how many tickets Close frees at a time.
const closers = 16

// Close ends all waiting with ErrClosed, and takes every ticket that was drawn
// by this Queue out of its queue, as long as ctx allows: the contexts of turns
// end, with the cause ErrClosed, before their locks are free. The error joins
// one for each ticket that could not be freed; that is passed over after its
// lease. More calls do nothing.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.closed = true
	if q.joining == 0 {
		close(q.joined)
	}
	q.mu.Unlock()
	q.cancel(ErrClosed)

	// Requests to join end now and clean up after themselves.
	var late error
	select {
	case <-q.joined:
	case <-ctx.Done():
		late = fmt.Errorf("requests to join are still under way: %w", ctx.Err())
	}
	return errors.Join(late, q.free(ctx))
}

// free takes all tickets out of their queues.
func (q *Queue) free(ctx context.Context) error {
	q.mu.Lock()
	all := make(chan *Ticket, len(q.tickets))
	for t := range q.tickets {
		all <- t
	}
	q.mu.Unlock()
	close(all)

	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		failed  []error // guarded by mu
	)
	for range min(closers, cap(all)) {
		workers.Go(func() {
			for t := range all {
				t.lease.Forget(ErrClosed)
				err := ctx.Err()
				if err == nil {
					err = t.end(ctx, ErrClosed)
				}
				if err != nil && !errors.Is(err, ErrClosed) {
					mu.Lock()
					failed = append(failed, fmt.Errorf("ticket %d of queue %q: %w", t.number, t.label, err))
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return errors.Join(failed...)
}

// begin registers a request to join; its context ends also with Close. The
// caller calls the returned function when it is over.
func (q *Queue) begin(ctx context.Context) (context.Context, func(), error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, nil, ErrClosed
	}
	q.joining++
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(q.ctx, func() { cancel(ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.joining--; q.joining == 0 && q.closed {
			close(q.joined)
		}
	}, nil
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

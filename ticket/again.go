package ticket

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/repo"
)

// lock draws a ticket and waits for its turn. A place that is lost while the caller only
// waits is no reason to fail: it holds nothing yet.
func (q *Queue) lock(ctx, grace context.Context, p place) (*Ticket, error) {
	if err := nesting.Wait(ctx, nesting.ItemOf(q.core, p.raw), repo.Key{Partition: p.label}); err != nil {
		return nil, err
	}
	t, err := q.arrive(ctx, grace, p)
	if err != nil {
		return nil, err
	}
	unknown := true // to anybody: the client has ended the goroutine, or has panicked
	defer func() {
		if unknown {
			_ = t.leave(grace)
		}
	}()
	for err == nil {
		if _, err = t.Wait(ctx); err == nil {
			unknown = false
			return t, nil
		}
		// The lease tells what has become of the place. That of something else is told by
		// the cause of a context, and so may be in err.
		if over := t.lease.Cause(); errors.Is(over, repo.ErrLockExpired) || errors.Is(over, repo.ErrLockLost) {
			t, err = q.comeBack(ctx, grace, t)
		}
	}
	unknown = false
	return nil, errors.Join(err, t.leave(grace))
}

// comeBack gives a caller whose ticket is over its place again, or another at
// the end of the line. With an error it returns the ticket that it was given.
func (q *Queue) comeBack(ctx, grace context.Context, old *Ticket) (*Ticket, error) {
	for {
		t, err := old.resume(ctx)
		if t == nil && old.lease.Ended() != nil { // the place is gone
			t, err = q.join(ctx, grace, old.place, false)
		}
		switch {
		case err == nil:
			return t, nil
		case lasting(err):
			return old, err
		}
		ddb.Sleep(ctx, q.cfg.Wait.Max) // as after a look without an answer
		if ctx.Err() != nil {
			return old, ddb.Join(q.lockedNow(old.place), ddb.CtxError(ctx))
		}
	}
}

// resume makes a new ticket of the place of one whose deadline has passed, if
// nobody has passed it over: a renewal and a passing over exclude each other by
// their conditions, however late the renewal is.
func (t *Ticket) resume(ctx context.Context) (*Ticket, error) {
	if err := t.lease.BeginLast(ctx); err != nil {
		return nil, t.lease.Describe(err)
	}
	defer t.lease.Done()
	if over := t.lease.Ended(); over != nil {
		return nil, t.lease.Describe(over)
	}
	asked, until := t.lease.NextEnd()
	image, err := t.move(ctx, until)
	if err != nil {
		return nil, err
	}
	l, err := t.q.parse(t.place, image)
	if err != nil {
		return nil, err
	}
	e, _ := l.find(t.id)             // move has seen it
	t.lease.Finish(repo.ErrReleased) // another handle has the place
	return t.q.newTicket(ctx, t.place, e, l, asked), nil
}

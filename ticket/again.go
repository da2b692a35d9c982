package ticket

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// waitAgain waits for a turn. A place that is lost while the caller only waits
// is no reason to fail: it holds nothing yet. It returns the ticket of the last
// place too.
func (q *Queue) waitAgain(ctx context.Context, t *Ticket) (*Turn, *Ticket, error) {
	for {
		turn, err := t.Wait(ctx)
		if err == nil || !errors.Is(err, repo.ErrLockExpired) && !errors.Is(err, repo.ErrLockLost) {
			return turn, t, err
		}
		if t, err = q.comeBack(ctx, t); err != nil {
			return nil, t, err
		}
	}
}

// comeBack gives a caller whose ticket is over its place again, or another at
// the end of the line. With an error it returns the ticket that it was given.
func (q *Queue) comeBack(ctx context.Context, old *Ticket) (*Ticket, error) {
	ctx, over, err := q.open.Begin(ctx)
	if err != nil {
		return old, err
	}
	defer over()
	standing := true // as far as we know
	for {
		var t *Ticket
		if standing {
			if t, err = old.resume(ctx); t == nil && err == nil {
				standing = false
			}
		}
		if !standing {
			t, err = q.join(ctx, old.place, false)
		}
		switch {
		case err == nil:
			return t, nil
		case errors.Is(err, ErrClosed) || lasting(err):
			return old, err
		case ctx.Err() == nil: // as with a look without an answer
			ddb.Sleep(ctx, q.cfg.Wait.Max)
		}
		if ctx.Err() != nil {
			if !errors.Is(err, repo.ErrLocked) {
				err = locked(old.place, line{})
			}
			return old, ddb.Join(err, ddb.CtxError(ctx))
		}
	}
}

// resume makes a new ticket of the place of one whose deadline has passed, if
// nobody has passed it over: a renewal and a passing over exclude each other by
// their conditions, however late the renewal is. Without ticket and error the
// place is gone.
func (t *Ticket) resume(ctx context.Context) (*Ticket, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	if t.lease.Ended() != nil {
		return nil, nil //nolint:nilnil // the place is gone
	}
	asked, until := t.lease.NextEnd()
	image, there, err := t.move(ctx, until)
	if err != nil {
		return nil, err
	}
	if !there {
		_ = t.lease.Lose()
		return nil, nil //nolint:nilnil // the place is gone
	}
	l, err := t.q.parse(t.place, image)
	if err != nil {
		return nil, err
	}
	e, there := l.find(t.id)
	if !there {
		return nil, fmt.Errorf("%w: queue %q: the answer lacks the entry that it shows", repo.ErrSchema, t.label)
	}
	t.lease.Finish(repo.ErrReleased) // another handle has the place
	return t.q.newTicket(ctx, t.place, e, l, asked.Add(t.q.cfg.Lease)), nil
}

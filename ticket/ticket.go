package ticket

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Ticket is a place in a queue. It is safe for concurrent use.
type Ticket struct {
	q *Queue
	place
	id     string
	number int64
	lease  *lease.Lease

	waiting chan struct{} // one Wait at a time: it owns judge and pace
	judge   judge
	pace    pace.Pace

	drawn  time.Time     // when the answer that showed its entry first arrived
	ending bool          // guarded by q.mu: it is given back, and takes nobody along any more
	fresh  *look         // guarded by q.mu: an answer that no Wait has used yet
	news   chan struct{} // a token is there when fresh is, or it is time to look
}

// look is an answer that shows the queue.
type look struct {
	line line
	at   time.Time // when it arrived
}

// newTicket makes the handle of an entry that stands in the queue, as an answer shows it;
// asked is when its end was reckoned.
func (q *Queue) newTicket(ctx context.Context, p place, e entry, l line, asked time.Time) *Ticket {
	t := &Ticket{q: q, place: p, id: e.id, number: e.number, drawn: time.Now(),
		waiting: make(chan struct{}, 1), news: make(chan struct{}, 1),
		judge: judge{skew: q.cfg.ClockSkew, clockless: q.cfg.Clockless}}
	t.fresh = &look{l, t.drawn}
	ahead, _ := l.before(t.id, t.number)
	q.core.Observe.Depth(ctx, telemetry.Ticket, len(ahead))
	t.lease = lease.New(&q.lease, (*leasedTicket)(t), asked.Add(q.cfg.Lease), e.until)
	_ = q.open.Add(t) // whoever draws it looks whether the queue is closed
	q.stands(t)
	t.lease.Start(ctx)
	context.AfterFunc(t.lease.Context(), func() { q.open.Remove(t); q.gone(t, false, false) })
	return t
}

// Number is the ticket. Numbers of a queue only grow.
func (t *Ticket) Number() int64 { return t.number }

// Format prints the entity and the number.
func (t *Ticket) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "ticket for %q, number %d", t.entity, t.number)
}

// Context ends, with the cause, when the place is lost (ErrLockLost), its
// deadline passes (ErrLockExpired), it is left (ErrReleased) or the queue is
// closed (ErrClosed).
func (t *Ticket) Context() context.Context { return t.lease.Context() }

// Position is the number of entries ahead; 0 says that it is its turn. One
// request, one read unit per 4 KB.
func (t *Ticket) Position(ctx context.Context) (int, error) {
	if err := t.usable(); err != nil {
		return 0, err
	}
	l, err := t.q.look(ctx, t.place)
	if err != nil {
		return 0, err
	}
	ahead, present := l.before(t.id, t.number)
	if !present {
		return 0, t.missing(ctx, l)
	}
	return len(ahead), nil
}

// Leave takes the place out of the queue; it is harmless after Leave, Done or
// Close. It works although ctx is done: it ends 3 s after ctx at the latest. One
// request. ErrLockLost says that others had passed it over.
func (t *Ticket) Leave(ctx context.Context) (err error) {
	ctx, told := t.q.core.Observe.Call(ctx, telemetry.Ticket, "Leave", func() string { return t.entity })
	defer told.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := t.end(ctx, repo.ErrReleased); !errors.Is(t.lease.Ended(), ErrClosed) {
		return err
	}
	return nil
}

// tell keeps an answer for Wait, unless it knows of a later one: nobody comes before an
// entry that stands, so the fewer are before it, the later it is, and what has gone
// never comes back. The caller holds the queue's mu.
func (t *Ticket) tell(seen look) {
	if t.fresh == nil || t.ahead(seen.line) <= t.ahead(t.fresh.line) {
		t.fresh = &seen
	}
	ddb.Signal(t.news)
}

// ahead is how many an answer shows before the ticket; -1 if the ticket has gone.
func (t *Ticket) ahead(l line) int {
	ahead, present := l.before(t.id, t.number)
	if !present {
		return -1
	}
	return len(ahead)
}

// told returns the answer that was kept; nil if there is none.
func (t *Ticket) told() *look {
	t.q.mu.Lock()
	defer t.q.mu.Unlock()
	l := t.fresh
	t.fresh = nil
	select {
	case <-t.news:
	default:
	}
	return l
}

// usable returns why the ticket cannot be used any more.
func (t *Ticket) usable() error {
	if t.q.open.Context().Err() != nil {
		return t.lease.Describe(ErrClosed)
	}
	if cause := t.lease.Cause(); cause != nil {
		return t.lease.Describe(cause)
	}
	return nil
}

// missing is called by whoever saw the queue without the entry.
func (t *Ticket) missing(ctx context.Context, seen line) error {
	if err := t.lease.BeginLast(ctx); err != nil { // an own removal is under way
		return t.lease.Describe(err)
	}
	defer t.lease.Done()
	if t.lease.Ended() == nil && seen.brokenTicket(t.number) {
		return t.lease.Lose() // whatever became of an own removal that had no answer
	}
	return t.lease.Missing()
}

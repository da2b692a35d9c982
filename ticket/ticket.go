package ticket

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

	drawn  time.Time // when the answer that showed its entry first arrived
	ending bool      // guarded by q.mu: it is given back, and takes nobody along any more

	mu    sync.Mutex
	fresh *look         // guarded by mu: an answer that no Wait has used yet
	news  chan struct{} // a token is there when fresh is, or it is time to look
}

// look is an answer that shows the queue.
type look struct {
	line line
	at   time.Time // when it arrived
}

// newTicket makes the handle of an entry that stands in the queue; end is when
// others may pass it over, on the own clock.
func (q *Queue) newTicket(ctx context.Context, p place, e entry, l line, end time.Time) *Ticket {
	t := &Ticket{q: q, place: p, id: e.id, number: e.number, drawn: time.Now(),
		waiting: make(chan struct{}, 1), news: make(chan struct{}, 1),
		judge: judge{skew: q.cfg.ClockSkew, clockless: q.cfg.Clockless}}
	t.tell(look{l, t.drawn})
	t.lease = lease.New(&q.lease, (*leasedTicket)(t), end, e.until)
	_ = q.open.Add(t) // whoever draws it looks whether the queue is closed
	q.stands(t)
	context.AfterFunc(t.lease.Context(), func() { q.open.Remove(t); q.gone(t) })
	t.lease.Start(ctx)
	return t
}

// Number is the ticket. Numbers of a queue only grow.
func (t *Ticket) Number() int64 { return t.number }

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
	ctx, told := t.q.core.Observe.Call(ctx, telemetry.Ticket, "Leave")
	told.Key(func() string { return t.entity })
	defer told.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	return t.leave(ctx)
}

// leave is Leave on a context that lingers.
func (t *Ticket) leave(ctx context.Context) error {
	if err := t.end(ctx, repo.ErrReleased); err != nil && !errors.Is(err, ErrClosed) {
		return err
	}
	return nil
}

// tell keeps an answer for Wait, unless it knows of a later one: nobody comes before an
// entry that stands, so the fewer are before it, the later it is, and what has gone
// never comes back.
func (t *Ticket) tell(seen look) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fresh == nil || t.ahead(seen.line) <= t.ahead(t.fresh.line) {
		t.fresh = &seen
	}
	t.wake()
}

// ahead is how many an answer shows before the ticket; -1 if the ticket has gone.
func (t *Ticket) ahead(l line) int {
	ahead, present := l.before(t.id, t.number)
	if !present {
		return -1
	}
	return len(ahead)
}

// wake ends a pause of Wait.
func (t *Ticket) wake() {
	select {
	case t.news <- struct{}{}:
	default:
	}
}

// told returns the answer that was kept; nil if there is none.
func (t *Ticket) told() *look {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.fresh
	t.fresh = nil
	select {
	case <-t.news:
	default:
	}
	return l
}

func (t *Ticket) describe(why error) error { return (*leasedTicket)(t).Describe(why) }

// usable returns why the ticket cannot be used any more.
func (t *Ticket) usable() error {
	if t.q.open.Context().Err() != nil {
		return t.describe(ErrClosed)
	}
	if cause := context.Cause(t.lease.Context()); cause != nil {
		return t.describe(cause)
	}
	if t.lease.Expired() {
		return t.describe(repo.ErrLockExpired)
	}
	return nil
}

// enter begins a call that sends a request for the ticket; exit follows. It
// waits for other calls as long as ctx allows. A renewal in the background
// gives way.
func (t *Ticket) enter(ctx context.Context) error {
	if err := t.lease.BeginLast(ctx); err != nil {
		return t.describe(fmt.Errorf("another call for it is under way: %w", err))
	}
	return nil
}

func (t *Ticket) exit() { t.lease.Done() }

// missing is called by whoever saw the queue without the entry.
func (t *Ticket) missing(ctx context.Context, seen line) error {
	if err := t.enter(ctx); err != nil { // an own removal is under way
		return err
	}
	defer t.exit()
	if t.lease.Ended() == nil && seen.brokenTicket(t.number) {
		return t.lease.Lose() // whatever became of an own removal that had no answer
	}
	return t.lease.Missing()
}

// leasedTicket is a ticket as its lease knows it.
type leasedTicket Ticket

// Renew moves the end of the entry. Its answer is also a look at the queue.
func (l *leasedTicket) Renew(ctx context.Context, until time.Time) error {
	t := (*Ticket)(l)
	asked := time.Now()
	image, there, err := t.move(ctx, until)
	if err != nil {
		return err
	}
	if !there {
		return t.lease.Lose()
	}
	// The own entry is in place, whatever else there is on the item. Those who
	// wait for their turn read it for themselves.
	if l, err := t.q.parse(t.place, image); err == nil {
		t.q.tell(t.place, l, asked)
	}
	return nil
}

// Describe says of an error which ticket it is about.
func (l *leasedTicket) Describe(err error) error {
	return fmt.Errorf("queue %q, ticket %d: %w", l.label, l.number, err)
}

// Name is what the log says of the ticket.
func (l *leasedTicket) Name() (kind string, which []slog.Attr) {
	return "ticket", []slog.Attr{slog.String("queue", l.label), slog.Int64("ticket", l.number)}
}

// move sends one renewal: it moves the end of the entry to until, if the entry is
// still there, and returns the item that shows it. The caller holds op.
func (t *Ticket) move(ctx context.Context, until time.Time) (image ddb.Item, there bool, err error) {
	in, err := t.q.renewal(t, until)
	if err != nil {
		return nil, false, err
	}
	res := t.q.core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true, Absence: true})
	if res.Outcome == ddb.Refused || res.Outcome == ddb.Unknown {
		return nil, false, res.Err
	}
	image = res.Shown()
	if !ddb.Equal(image[attrTicket+t.id], ddb.Integer(t.number)) {
		return image, false, nil
	}
	// No greater end was ever sent: if it is in place, this renewal landed.
	if res.Outcome == ddb.Condition && !ddb.Equal(image[attrBeat+t.id], ddb.Number(ddb.Seconds(until))) {
		return image, true, fmt.Errorf("%w: queue %q, ticket %d: somebody else changed the entry", repo.ErrSchema, t.label, t.number)
	}
	return image, true, nil
}

// end takes the entry away, and repeats that until there is a verdict, as long as
// ctx allows, which is one that lingers, or that of Close. The same request draws the
// tickets of those of this process who wait for one.
func (t *Ticket) end(ctx context.Context, why error) error {
	e := t.q.ending(t)
	alone, err := t.q.removal(t, ending{})
	in := alone
	if err == nil && (len(e.along) > 0 || e.told) {
		in, err = t.q.removal(t, e)
	}
	var last ddb.Result
	if err == nil {
		send := func() ddb.Result {
			return t.q.core.Update(ctx, in, ddb.Options{NoGrace: true, Holding: true, Absence: true})
		}
		err = t.lease.End(ctx, why, func() (ddb.Result, bool) {
			last = send()
			if in != alone && last.Outcome == ddb.Condition && ddb.Equal(last.Image[attrTicket+t.id], ddb.Integer(t.number)) {
				// The entry is as it was: what is refused is the others' entering.
				in = alone
				clean := last.Clean
				last = send()
				last.Clean = last.Clean && clean
			}
			return last, false
		}, func(res ddb.Result) error { return t.verdict(ctx, res) })
	}
	t.q.ended(ctx, t, e, last)
	if errors.Is(err, repo.ErrReleased) {
		return nil
	}
	return err
}

// verdict judges a removal; nil means that the entry is gone by it. The caller
// holds op.
func (t *Ticket) verdict(ctx context.Context, res ddb.Result) error {
	switch {
	case res.Outcome == ddb.Applied:
		return nil
	case res.Outcome == ddb.Refused:
		return t.describe(res.Err)
	case res.Outcome != ddb.Condition:
		return t.describe(fmt.Errorf("%w: the place may be taken until its lease ends: %w", repo.ErrOutcomeUnknown, res.Err))
	}
	l, err := t.q.parse(t.place, res.Image)
	if err != nil {
		return err
	}
	if _, there := l.find(t.id); there {
		// A late copy of the request that drew the ticket stands there, with
		// another number: it is nobody's, but only we can know.
		t.q.abandon(ctx, t.place, t.id)
	}
	if l.leftBy(t.number, !res.Clean, t.lease.Expired()) {
		return nil
	}
	return t.lease.Lose()
}

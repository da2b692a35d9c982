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
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/repo"
)

// Ticket is a place in a queue. It is safe for concurrent use.
type Ticket struct {
	q *Queue
	place
	id     string
	number int64
	lease  *lease.Lease

	doubt bool      // guarded by the lease's op: an earlier removal had no verdict
	beats time.Time // guarded by the lease's op: the greatest end that was ever sent

	waiting chan struct{} // one Wait at a time: it owns judge and pace
	judge   judge
	pace    pace.Pace

	mu    sync.Mutex
	fresh *look         // guarded by mu: an answer that no Wait has used yet
	news  chan struct{} // a token is there when fresh is
}

// look is an answer that shows the queue.
type look struct {
	line line
	at   time.Time // when it arrived
}

// newTicket makes the handle of an entry that stands in the queue; end is when
// others may pass it over, on the own clock.
func (q *Queue) newTicket(p place, e entry, l line, end time.Time) *Ticket {
	t := &Ticket{q: q, place: p, id: e.id, number: e.number, beats: e.until,
		waiting: make(chan struct{}, 1), news: make(chan struct{}, 1),
		judge: judge{skew: q.cfg.ClockSkew, clockless: q.cfg.Clockless}}
	t.tell(l)
	t.lease = lease.New(lease.Config{Length: q.cfg.Lease, Every: q.cfg.Lease / 3, Margin: lock.Margin(q.cfg.Lease), Failed: t.failed}, end, t.renew)
	q.keep(t)
	t.lease.Start()
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
		return 0, t.missing(ctx)
	}
	return len(ahead), nil
}

// Leave takes the place out of the queue; it is harmless after Leave, Done or
// Close. It works although ctx is done: it ends 3 s after ctx at the latest. One
// request. ErrLockLost says that others had passed it over.
func (t *Ticket) Leave(ctx context.Context) error {
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

// tell keeps an answer for Wait.
func (t *Ticket) tell(l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fresh = &look{l, time.Now()}
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

func (t *Ticket) describe(why error) error {
	return fmt.Errorf("queue %q, ticket %d: %w", t.label, t.number, why)
}

// usable returns why the ticket cannot be used any more.
func (t *Ticket) usable() error {
	if t.q.ctx.Err() != nil {
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
func (t *Ticket) missing(ctx context.Context) error {
	if err := t.enter(ctx); err != nil { // an own removal is under way
		return err
	}
	defer t.exit()
	if why := t.lease.Ended(); why != nil {
		return t.describe(why)
	}
	if t.doubt {
		// A removal without an answer took it away.
		t.lease.Finish(repo.ErrReleased)
		return t.describe(repo.ErrReleased)
	}
	return t.lost()
}

// lost ends a ticket that was passed over. The caller holds op.
func (t *Ticket) lost() error {
	t.lease.Finish(repo.ErrLockLost)
	return t.describe(repo.ErrLockLost)
}

// failed logs a renewal that will be repeated.
func (t *Ticket) failed(err error) {
	if errors.Is(err, context.Canceled) {
		return // it gave way to another call
	}
	t.q.core.Observe.Log.Warn("dynahold: a ticket could not be renewed yet", slog.String("table", t.q.core.Name),
		slog.String("queue", t.label), slog.Int64("ticket", t.number), slog.Any("error", err))
}

// renew moves the end to a full lease from now. Its answer is also a look at
// the queue. The caller holds op.
func (t *Ticket) renew(ctx context.Context) error {
	if why := t.lease.Ended(); why != nil {
		return t.describe(why)
	}
	if cause := context.Cause(t.lease.Context()); cause != nil {
		return t.describe(cause)
	}
	m, err := t.move(ctx)
	if err != nil {
		return err
	}
	if !m.there {
		return t.lost()
	}
	t.lease.Renewed(m.end)
	// The own entry is in place, whatever else there is on the item. Those who
	// wait for their turn read it for themselves.
	if l, err := t.q.parse(t.place, m.image); err == nil {
		t.tell(l)
	}
	return nil
}

// moved is what came of a renewal.
type moved struct {
	there bool
	end   time.Time // when others may pass the entry over, on the own clock
	image ddb.Item
}

// move sends one renewal: it moves the end of the entry to a lease from now, if
// the entry is still there. The caller holds op.
func (t *Ticket) move(ctx context.Context) (moved, error) {
	// The end is also the beat that clockless watchers look for: it grows with
	// every renewal, even if the wall clock was set back.
	asked := time.Now() // before the end is reckoned
	until := ddb.Later(t.q.clock().Add(t.q.cfg.Lease), t.beats)
	t.beats = until
	in, err := t.q.renewal(t, until)
	if err != nil {
		return moved{}, err
	}
	res := t.q.core.Update(ctx, in, ddb.Options{Timeout: t.q.cfg.Lease / 3, NoGrace: true, Holding: true, Absence: true})
	m := moved{end: asked.Add(t.q.cfg.Lease), image: res.Item}
	switch res.Outcome {
	case ddb.Refused, ddb.Unknown:
		return m, repo.Classify(res.Err)
	case ddb.Condition:
		m.image = res.Image
	}
	ticket, there := m.image[attrTicket+t.id]
	if !there {
		return m, nil
	}
	number, err := ddb.Int(ticket)
	if m.there = err == nil && number == t.number; !m.there {
		return m, nil
	}
	// No greater end was ever sent: if it is in place, this renewal landed.
	if res.Outcome == ddb.Condition && !ddb.Equal(m.image[attrBeat+t.id], ddb.Number(ddb.Seconds(until))) {
		return m, fmt.Errorf("%w: queue %q, ticket %d: somebody else changed the entry", repo.ErrSchema, t.label, t.number)
	}
	return m, nil
}

// end takes the entry away, insisting on a verdict as long as ctx allows, which
// is one that lingers, or that of Close.
func (t *Ticket) end(ctx context.Context, why error) error {
	if err := t.enter(ctx); err != nil {
		t.lease.Forget(why)
		return err
	}
	defer t.exit()
	switch ended := t.lease.Ended(); {
	case errors.Is(ended, repo.ErrReleased):
		return nil
	case ended != nil:
		return t.describe(ended)
	}
	t.lease.Halt()
	in, err := t.q.removal(t)
	if err != nil {
		return err
	}
	res := ddb.UntilDecided(ctx, ddb.Backoff{Min: t.q.cfg.Wait.Min, Max: t.q.cfg.Wait.Max}, !t.doubt, t.lease.Expired, func() (ddb.Result, bool) {
		return t.q.core.Update(ctx, in, ddb.Options{Timeout: t.q.cfg.Lease / 3, NoGrace: true, Holding: true, Absence: true}), false
	})
	t.doubt = !res.Clean
	err = t.verdict(ctx, res)
	switch {
	case err == nil:
		t.lease.Finish(why)
	case t.lease.Ended() == nil:
		// Nothing renews the entry any more: it ends with its lease at the latest.
		t.lease.Forget(why)
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
		return t.describe(repo.Classify(res.Err))
	case res.Outcome != ddb.Condition:
		return t.describe(fmt.Errorf("%w: the place may be taken until its lease ends: %w", repo.ErrOutcomeUnknown, repo.Classify(res.Err)))
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
	if l.leftBy(t.number, t.doubt, t.lease.Expired()) {
		return nil
	}
	return t.lost()
}

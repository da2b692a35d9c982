package lock

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/pace"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// How those who wait in the queue look at the item: the two who are next have several
// reads under way around the moment of their turn, so that the answer to one
// of them is never far. A look only tells when to act: what may be written, the write's
// condition decides, so a look that is wrong or missing costs time and nothing else.

// Five looks share a trip, so the answer that tells a waiter of its turn is a tenth of
// a trip late on average. A slow one keeps its place until it is answered: where latency
// is uneven several do, and the next ones must not wait for them.
const (
	looksATrip = 5
	mostLooks  = looksATrip + 8
)

// perUnit is the shortest time from one look to the next, for each read unit that
// a look bills. A partition gives 3,000 units a second, and two waiters look at
// a time: a quarter is left for everybody else.
const perUnit = 900 * time.Microsecond

// unitSize is how many bytes one unit reads consistently.
const unitSize = 4096

// spacing is how close the looks at an item may follow each other.
func (c *Config) spacing(image ddb.Item) pace.Spacing {
	units := (protocol.Size(image) + unitSize - 1) / unitSize
	return pace.Spacing{Share: looksATrip, Least: time.Duration(units) * perUnit, Limit: c.glance()}
}

// looks are one waiter's looks at the item. They belong to the waiter, and then to
// the lock that it gets: who ends, ends them.
type looks struct {
	ctx  context.Context
	stop context.CancelFunc
	all  sync.WaitGroup
	news chan struct{} // one look, or more, has ended since the waiter was told

	mu       sync.Mutex
	ended    []look // guarded by mu: those that the waiter has not taken in
	underWay int    // guarded by mu
	forgets  bool   // guarded by mu: nobody takes in what ends from now on

	// The waiter's own.
	last     time.Time // when the last one was sent
	believed int64     // lockToken, as the newest answer shows it
	arrived  time.Time // when that answer came
}

// look is a look that has ended.
type look struct {
	asked time.Time
	ddb.Result
}

// newLooks begins with the answer to the request that was sent at asked.
func newLooks(ctx context.Context, core *protocol.Core, image ddb.Item, asked time.Time) *looks {
	s := &looks{news: make(chan struct{}, 1), last: asked}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.believe(core, image, asked)
	return s
}

// end ends the looks that are under way, and waits until they have ended.
func (s *looks) end() {
	if s != nil {
		s.stop()
		s.all.Wait()
	}
}

// send sends one look.
func (s *looks) send(core *protocol.Core, key ddb.Item, timeout time.Duration) {
	asked := time.Now()
	s.last = asked
	s.mu.Lock()
	s.underWay++
	s.mu.Unlock()
	s.all.Go(func() {
		got := look{asked, ddb.Result{Err: errLookEnded}}
		defer func() { s.note(got) }() // else it would count as under way for ever
		got.Result = core.Read(s.ctx, key, ddb.Options{Timeout: timeout, Single: true})
	})
}

var errLookEnded = fmt.Errorf("a look at the item: %w", goroutine.ErrEnded)

// note takes down a look that has ended, and tells the waiter.
func (s *looks) note(a look) {
	s.mu.Lock()
	if !s.forgets {
		s.ended = append(s.ended, a)
	}
	s.underWay--
	s.mu.Unlock()
	ddb.Signal(s.news) // the waiter may not have come yet to those before
}

// forget keeps nothing of what the looks have shown or will show: they stay with a lock
// for as long as it is held.
func (s *looks) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.forgets = nil, true
}

// take returns a look that has ended, if there is one, and how many are under way.
func (s *looks) take() (a look, ended bool, underWay int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) > 0 {
		a, ended = s.ended[0], true
		s.ended = s.ended[1:]
	}
	return a, ended, s.underWay
}

// believe reports whether an answer is certainly newer than the one that was believed
// last. Looks that are under way at once see the item, and are answered, in any
// order. One that was sent when the other's answer was there is newer; so is one that
// shows a greater lockToken, which grows with every hold and every entry. What neither
// tells is left to the next look.
func (s *looks) believe(core *protocol.Core, image ddb.Item, asked time.Time) bool {
	l, err := core.ParseRecord(image)
	if asked.Before(s.arrived) && (err != nil || l.Token <= s.believed) {
		return false
	}
	s.believed, s.arrived = l.Token, time.Now()
	return true
}

// look waits for an answer that is news, and sends looks meanwhile, the first of them
// at next. l is the holder.
func (q *queued) look(ctx context.Context, l stored.Record, next time.Time) (image ddb.Item, asked time.Time, err error) {
	ended := q.WaitBy(ctx, l, func() {
		q.begin()
		for ctx.Err() == nil && err == nil && image == nil {
			a, ended, underWay := q.looks.take()
			if !ended {
				q.sendOrSleep(ctx, &next, underWay)
				continue
			}
			asked = a.asked
			if image, err = q.heard(ctx, a); q.failed > 0 {
				next = q.afterSilence(a)
			}
		}
	})
	if err == nil {
		err = ended
	}
	return image, asked, err
}

// sendOrSleep sends a look if it is time for one; else it sleeps until then, or until
// there is news.
func (q *queued) sendOrSleep(ctx context.Context, next *time.Time, underWay int) {
	s, left := q.looks, time.Until(*next)
	switch {
	case underWay >= mostLooks, underWay > 0 && q.failed > 0:
		q.Core.SleepOr(ctx, q.spacing.Limit, s.news)
	case left > 0:
		until := q.Core.Clock().Add(left)
		q.Core.SleepOr(ctx, left, s.news)
		if q.Core.Jumps && !q.Core.Clock().Before(until) {
			*next = time.Now()
		}
	default:
		s.send(q.Core, q.Raw, doubled(q.locker.glance(), q.failed))
		*next = q.forecast.Next(s.last, q.spacing)
	}
}

// heard takes in a look that has ended, and returns what it shows if that is news.
func (q *queued) heard(ctx context.Context, a look) (ddb.Item, error) {
	image, err := q.answer(ctx, a)
	if image == nil {
		return nil, err
	}
	q.forecast.Took(time.Since(a.asked))
	if !q.looks.believe(q.Core, image, a.asked) {
		return nil, nil
	}
	return image, nil
}

// afterSilence is when to look again after a look that had no answer. One that was
// throttled has one: to look half as often from now on.
func (q *queued) afterSilence(a look) time.Time {
	if ddb.Throttled(a.Err) {
		q.spacing.Least = min(2*max(q.spacing.Least, q.forecast.Trip/looksATrip), q.spacing.Limit)
		return time.Now().Add(q.spacing.Least)
	}
	return a.asked.Add(min(q.Wait.Max, q.locker.glance()/2))
}

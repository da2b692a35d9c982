package semaphore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// The callers of one process that want permits of one resource stand in line, in the
// order in which they came. The first of them asks at the table, for all; whoever gives
// a permit back passes it on to the first that does not ask just then, by one request.

// lookAtOwn is how often the line asks at the table while all permits are those of
// its own process, which passes them on: what an operator does is seen there only.
const lookAtOwn = time.Second

// localQueue is the line for one resource. All that changes is guarded by queuesMu of the semaphore.
type localQueue struct {
	s        *Semaphore
	resource string

	callers []*caller          // who wait, in order
	own     map[string]*Permit // of this process, by attribute
	seen    *resources.Row     // the latest answer; nil: there was none
	at      time.Time          // when it came
	full    time.Time          // when it said that all permits are out, all of them to this process; zero: it did not
	others  time.Time          // when others were last seen to use the resource
	away    time.Time          // nobody asks until then
}

// caller is one who waits. All that changes is guarded by queuesMu of the semaphore.
type caller struct {
	line *localQueue // that it stands in until it leaves
	attr string      // of its permit, whoever gets it for it
	wake chan struct{}

	asks   bool           // at the table
	next   time.Time      // it asks again then
	chosen bool           // a permit is being passed on to it
	unsure bool           // a request that has had no answer may have given it its permit
	left   bool           // it waits no longer
	behind bool           // when it left the line, others stood there
	got    *Permit        // that was passed on to it
	seen   *resources.Row // when it left the line; nil: nobody had an answer yet
}

// join stands in the line of a resource.
func (s *Semaphore) join(name, attr string) *caller {
	q := s.lockQueue(name)
	defer s.queuesMu.Unlock()
	c := &caller{line: q, attr: attr, wake: make(chan struct{}, 1)}
	q.callers = append(q.callers, c)
	return c
}

// lockQueue returns the line of a resource, which the caller unlocks.
func (s *Semaphore) lockQueue(resource string) *localQueue {
	s.queuesMu.Lock()
	q := s.queues[resource]
	if q == nil {
		q = &localQueue{s: s, resource: resource, own: map[string]*Permit{}}
		if s.queues == nil {
			s.queues = map[string]*localQueue{}
		}
		s.queues[resource] = q
	}
	return q
}

// changed lets the line go on after a change, and forgets one that nobody uses.
func (q *localQueue) changed() {
	if i := slices.IndexFunc(q.callers, (*caller).rests); i >= 0 {
		ddb.Signal(q.callers[i].wake)
	}
	if len(q.callers) == 0 && len(q.own) == 0 {
		delete(q.s.queues, q.resource)
	}
}

func (c *caller) rests() bool { return !c.asks && !c.chosen }

// turn waits until it is the caller's turn to ask at the table, or it was passed a
// permit. An error is the end of ctx: the caller has left the line.
func (c *caller) turn(ctx context.Context) (*Permit, error) {
	grace, cancel := ddb.WithGrace(ctx, ddb.Settle) // what is being passed on is waited for
	defer cancel()
	for {
		got, wait := c.step(ctx.Err() != nil, grace.Err() != nil)
		switch {
		case got != nil || wait == 0:
			return got, nil
		case wait < 0:
			return nil, ddb.CtxError(ctx)
		case ctx.Err() != nil:
			c.line.s.table.Core.SleepOr(grace, wait, c.wake)
		default:
			c.line.s.table.Core.SleepOr(ctx, wait, c.wake)
		}
	}
}

// step is what a caller has got, or how long it waits before it looks at the line again:
// 0, it asks at the table now; less, it has left the line. ends says that its context has
// ended, over that it waits for nothing any more.
func (c *caller) step(ends, over bool) (*Permit, time.Duration) {
	q := c.line
	q.s.queuesMu.Lock()
	defer q.s.queuesMu.Unlock()
	switch {
	case c.got != nil:
		return c.got, 0
	case c.chosen && !over:
		return nil, q.s.cfg.Lease
	case ends:
		q.leave(c)
		return nil, -1
	case c.asks:
		return nil, 0
	}
	if wait := q.due(c); wait > 0 {
		return nil, wait
	}
	c.asks = true
	q.changed()
	return nil, 0
}

// due is how long it is until a caller may ask at the table.
func (q *localQueue) due(c *caller) time.Duration {
	asking, room := 0, 1
	if q.seen != nil {
		room = max(room, q.seen.Limit-q.seen.Running)
	}
	for _, o := range q.callers {
		if o.asks {
			asking++
		}
	}
	if first := slices.IndexFunc(q.callers, (*caller).rests); asking >= room || q.callers[first] != c {
		return time.Hour // until it is woken
	}
	at := c.next
	if q.away.After(at) {
		at = q.away
	}
	if again := q.full.Add(lookAtOwn); !q.full.IsZero() && again.After(at) {
		at = again
	}
	return max(0, time.Until(at))
}

// leave takes a caller out of the line.
func (q *localQueue) leave(c *caller) {
	c.left, c.asks, c.seen, c.behind = true, false, q.seen, len(q.callers) > 1
	q.callers = slices.DeleteFunc(q.callers, func(o *caller) bool { return o == c })
	q.changed()
}

// leaves is leave, for one that may have left.
func (c *caller) leaves() {
	c.line.s.queuesMu.Lock()
	defer c.line.s.queuesMu.Unlock()
	if !c.left {
		c.line.leave(c)
	}
}

// refused notes that the table had no permit; the caller asks again after a while.
func (c *caller) refused(r resources.Row, pause time.Duration, unsure bool) {
	c.line.s.queuesMu.Lock()
	defer c.line.s.queuesMu.Unlock()
	c.line.saw(r)
	c.asks, c.unsure, c.next = false, c.unsure || unsure, time.Now().Add(pause)
	c.line.changed()
}

// took notes a permit of this process.
func (s *Semaphore) took(r resources.Row, h *Permit) {
	q := s.lockQueue(r.Name)
	defer s.queuesMu.Unlock()
	h.since = time.Now()
	q.own[h.attr] = h
	q.saw(r)
	q.changed()
}

// dropped notes that a permit is over, which nobody has passed on.
func (s *Semaphore) dropped(h *Permit) {
	q := s.lockQueue(h.name)
	defer s.queuesMu.Unlock()
	q.drop(h)
	q.changed()
}

func (q *localQueue) drop(h *Permit) {
	if q.own[h.attr] != h {
		return
	}
	delete(q.own, h.attr)
	q.full = time.Time{}
	if q.seen != nil {
		seen := *q.seen // a copy: who has left the line speaks of that one
		seen.Running--  // as far as we know
		q.seen = &seen
	}
}

// saw takes in what an answer says of the resource. One that was overtaken by a later one
// on its way would take for others' what its own process has given back since.
func (q *localQueue) saw(r resources.Row) {
	if q.seen != nil && r.Changes < q.seen.Changes && time.Since(q.at) < lookAtOwn {
		return
	}
	q.seen, q.at, q.full = &r, time.Now(), time.Time{}
	mine, others := 0, r.Queued > 0 || r.Running > len(r.Permits)
	for attr := range r.Permits {
		switch h := q.own[attr]; {
		case h != nil && h.lease.Cause() == nil:
			mine++
		case h == nil: // it may be that of one who has no answer yet
			others = others || !slices.ContainsFunc(q.callers, func(c *caller) bool { return c.attr == attr })
		}
	}
	if others {
		q.others = time.Now()
	}
	if r.Running >= r.Limit && mine == r.Running {
		q.full = time.Now()
	}
}

// busy is the error of a caller that has left the line without a permit.
func (c *caller) busy() error {
	switch {
	case c.seen == nil && !c.behind:
		return fmt.Errorf("resource %q: no permit", c.line.resource) // its context had ended before
	case c.seen == nil:
		return fmt.Errorf("resource %q: %w: a caller of this process is before this one: %w", c.line.resource, ErrBusy, repo.ErrLocked)
	}
	return busy(*c.seen)
}

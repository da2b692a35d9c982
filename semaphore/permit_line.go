package semaphore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// The callers of one process that want permits of one resource stand in line, in the
// order in which they came. The first of them asks at the table, for all; whoever gives
// a permit back passes it on to the first that does not ask just then, by one request.

// lookAtOwn is how often the line asks at the table while all permits are those of
// its own process, which passes them on: what an operator does is seen there only.
const lookAtOwn = time.Second

// permitLine is the line for one resource. All that changes is guarded by store.linesMu.
type permitLine struct {
	s        *store
	resource string

	callers []*caller          // who wait, in order
	own     map[string]*Permit // of this process, by attribute
	seen    *Resource          // the latest answer; nil: there was none
	at      time.Time          // when it came
	full    time.Time          // when it said that all permits are out, all of them to this process; zero: it did not
	others  time.Time          // when others were last seen to use the resource
	away    time.Time          // nobody asks until then
}

// caller is one who waits. All that changes is guarded by store.linesMu.
type caller struct {
	line *permitLine // that it stands in until it leaves
	attr string      // of its permit, whoever gets it for it
	wake chan struct{}

	asks   bool      // at the table
	next   time.Time // it asks again then
	chosen bool      // a permit is being passed on to it
	unsure bool      // a request that has had no answer may have given it its permit
	left   bool      // it waits no longer
	got    *Permit   // that was passed on to it
	seen   *Resource // when it left the line; nil: nobody had an answer yet
}

// join stands in the line of a resource.
func (s *store) join(name, attr string) *caller {
	l := s.lockLine(name)
	defer s.linesMu.Unlock()
	c := &caller{line: l, attr: attr, wake: make(chan struct{}, 1)}
	l.callers = append(l.callers, c)
	return c
}

// lockLine returns the line of a resource, which the caller unlocks.
func (s *store) lockLine(resource string) *permitLine {
	s.linesMu.Lock()
	l := s.lines[resource]
	if l == nil {
		l = &permitLine{s: s, resource: resource, own: map[string]*Permit{}}
		if s.lines == nil {
			s.lines = map[string]*permitLine{}
		}
		s.lines[resource] = l
	}
	return l
}

// changed lets the line go on after a change, and forgets one that nobody uses.
func (l *permitLine) changed() {
	if i := slices.IndexFunc(l.callers, (*caller).rests); i >= 0 {
		signal(l.callers[i].wake)
	}
	if len(l.callers) == 0 && len(l.own) == 0 {
		delete(l.s.lines, l.resource)
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
			c.line.s.core.SleepOr(grace, wait, c.wake)
		default:
			c.line.s.core.SleepOr(ctx, wait, c.wake)
		}
	}
}

// step is what a caller has got, or how long it waits before it looks at the line again:
// 0, it asks at the table now; less, it has left the line. ends says that its context has
// ended, over that it waits for nothing any more.
func (c *caller) step(ends, over bool) (*Permit, time.Duration) {
	l := c.line
	l.s.linesMu.Lock()
	defer l.s.linesMu.Unlock()
	switch {
	case c.got != nil:
		return c.got, 0
	case c.chosen && !over:
		return nil, l.s.cfg.Lease
	case ends:
		l.leave(c)
		return nil, -1
	case c.asks:
		return nil, 0
	}
	if wait := l.due(c); wait > 0 {
		return nil, wait
	}
	c.asks = true
	l.changed()
	return nil, 0
}

// due is how long it is until a caller may ask at the table.
func (l *permitLine) due(c *caller) time.Duration {
	asking, room := 0, 1
	if l.seen != nil {
		room = max(room, l.seen.Limit-l.seen.Running)
	}
	for _, o := range l.callers {
		if o.asks {
			asking++
		}
	}
	if first := slices.IndexFunc(l.callers, (*caller).rests); asking >= room || l.callers[first] != c {
		return time.Hour // until it is woken
	}
	at := c.next
	if l.away.After(at) {
		at = l.away
	}
	if again := l.full.Add(lookAtOwn); !l.full.IsZero() && again.After(at) {
		at = again
	}
	return max(0, time.Until(at))
}

// leave takes a caller out of the line.
func (l *permitLine) leave(c *caller) {
	c.left, c.asks, c.seen = true, false, l.seen
	l.callers = slices.DeleteFunc(l.callers, func(o *caller) bool { return o == c })
	l.changed()
}

// leaves is leave, for one that may have left.
func (c *caller) leaves() {
	c.line.s.linesMu.Lock()
	defer c.line.s.linesMu.Unlock()
	if !c.left {
		c.line.leave(c)
	}
}

// refused notes that the table had no permit; the caller asks again after a while.
func (c *caller) refused(r Resource, pause time.Duration, unsure bool) {
	c.line.s.linesMu.Lock()
	defer c.line.s.linesMu.Unlock()
	c.line.saw(r)
	c.asks, c.unsure, c.next = false, c.unsure || unsure, time.Now().Add(pause)
	c.line.changed()
}

// took notes a permit of this process.
func (s *store) took(r Resource, h *Permit) {
	l := s.lockLine(r.Name)
	defer s.linesMu.Unlock()
	h.since = time.Now()
	l.own[h.attr] = h
	l.saw(r)
	l.changed()
}

// dropped notes that a permit is over, which nobody has passed on.
func (s *store) dropped(h *Permit) {
	l := s.lockLine(h.name)
	defer s.linesMu.Unlock()
	l.drop(h)
	l.changed()
}

func (l *permitLine) drop(h *Permit) {
	if l.own[h.attr] != h {
		return
	}
	delete(l.own, h.attr)
	l.full = time.Time{}
	if l.seen != nil {
		seen := *l.seen // a copy: who has left the line speaks of that one
		seen.Running--  // as far as we know
		l.seen = &seen
	}
}

// saw takes in what an answer says of the resource. One that was overtaken by a later one
// on its way would take for others' what its own process has given back since.
func (l *permitLine) saw(r Resource) {
	if l.seen != nil && r.changes < l.seen.changes && time.Since(l.at) < lookAtOwn {
		return
	}
	l.seen, l.at, l.full = &r, time.Now(), time.Time{}
	mine, others := 0, r.Queued > 0 || r.Running > len(r.permits)
	for attr := range r.permits {
		switch h := l.own[attr]; {
		case h != nil && h.lease.Cause() == nil:
			mine++
		case h == nil: // it may be that of one who has no answer yet
			others = others || !slices.ContainsFunc(l.callers, func(c *caller) bool { return c.attr == attr })
		}
	}
	if others {
		l.others = time.Now()
	}
	if r.Running >= r.Limit && mine == r.Running {
		l.full = time.Now()
	}
}

// busy is the error of a caller that has left the line without a permit.
func (c *caller) busy() error {
	if c.seen == nil {
		return fmt.Errorf("resource %q: %w: a caller of this process is before this one: %w", c.line.resource, ErrBusy, repo.ErrLocked)
	}
	return c.seen.busy()
}

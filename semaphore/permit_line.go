package semaphore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// The callers of one process that want permits of one resource stand in line, in the
// order in which they came. The first of them asks at the table, for all; whoever gives
// a permit back passes it on to the first that does not ask just then, by one request.

// How often a permit is passed on, and for how long, before it is given back to the
// table, from which the process then stays away for a moment: who waits in another
// process leaves no trace in the row. Less often where others are known to want permits
// of the resource.
const (
	handsAlone     = 8
	handsContended = 4
	handsOfLease   = 10 // a permit stays in one process for at most this part of a lease
	contendedFor   = 2 * time.Second
	stayAway       = 10 * time.Millisecond

	// lookAtOwn is how often the line asks at the table while all permits are those of
	// its own process, which passes them on: what an operator does is seen there only.
	lookAtOwn = time.Second
)

// permitLines are the lines of a process, by resource.
type permitLines struct {
	mu sync.Mutex
	of map[string]*permitLine // guarded by mu: of resources that callers use, or wait for
}

// permitLine is the line for one resource. All of it is guarded by the lines' mu.
type permitLine struct {
	callers []*caller          // who wait, in order
	own     map[string]*Permit // of this process, by attribute
	seen    *Resource          // the latest answer; nil: there was none
	at      time.Time          // when it came
	full    time.Time          // when it said that all permits are out, all of them to this process; zero: it did not
	others  time.Time          // when others were last seen to use the resource
	away    time.Time          // nobody asks until then
}

// caller is one who waits. All that changes is guarded by the lines' mu.
type caller struct {
	attr string // of its permit, whoever gets it for it
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
	c := &caller{attr: attr, wake: make(chan struct{}, 1)}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	l := s.lines.line(name)
	l.callers = append(l.callers, c)
	return c
}

// line returns that of a resource. The caller holds mu.
func (s *permitLines) line(name string) *permitLine {
	l := s.of[name]
	if l == nil {
		l = &permitLine{own: map[string]*Permit{}}
		if s.of == nil {
			s.of = map[string]*permitLine{}
		}
		s.of[name] = l
	}
	return l
}

// changed lets the line go on after a change, and forgets one that nobody uses. The
// caller holds mu.
func (s *permitLines) changed(name string, l *permitLine) {
	if i := slices.IndexFunc(l.callers, (*caller).rests); i >= 0 {
		signal(l.callers[i].wake)
	}
	if len(l.callers) == 0 && len(l.own) == 0 {
		delete(s.of, name)
	}
}

func (c *caller) rests() bool { return !c.asks && !c.chosen }

// turn waits until it is the caller's turn to ask at the table, or it was passed a
// permit. An error is the end of ctx: the caller has left the line.
func (s *store) turn(ctx context.Context, name string, c *caller) (*Permit, error) {
	grace, cancel := ddb.WithGrace(ctx, ddb.Settle) // what is being passed on is waited for
	defer cancel()
	for {
		got, wait := s.step(name, c, ctx.Err() != nil, grace.Err() != nil)
		switch {
		case got != nil || wait == 0:
			return got, nil
		case wait < 0:
			return nil, ddb.CtxError(ctx)
		case ctx.Err() != nil:
			s.core.SleepOr(grace, wait, c.wake)
		default:
			s.core.SleepOr(ctx, wait, c.wake)
		}
	}
}

// step is what a caller has got, or how long it waits before it looks at the line again:
// 0, it asks at the table now; less, it has left the line. ends says that its context has
// ended, over that it waits for nothing any more.
func (s *store) step(name string, c *caller, ends, over bool) (*Permit, time.Duration) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if c.got != nil {
		return c.got, 0
	}
	l := s.lines.line(name)
	switch {
	case c.chosen && !over:
		return nil, s.cfg.Lease
	case ends:
		s.lines.leave(name, l, c)
		return nil, -1
	case c.asks:
		return nil, 0
	}
	if wait := l.due(c); wait > 0 {
		return nil, wait
	}
	c.asks = true
	s.lines.changed(name, l)
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

// leave takes a caller out of the line. The caller holds mu.
func (s *permitLines) leave(name string, l *permitLine, c *caller) {
	c.left, c.asks, c.seen = true, false, l.seen
	l.callers = slices.DeleteFunc(l.callers, func(o *caller) bool { return o == c })
	s.changed(name, l)
}

// leaves is leave, for one that may have left.
func (s *store) leaves(name string, c *caller) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	if !c.left {
		s.lines.leave(name, s.lines.line(name), c)
	}
}

// refused notes that the table had no permit; the caller asks again after a while.
func (s *store) refused(r Resource, c *caller, pause time.Duration, unsure bool) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	l := s.lines.line(r.Name)
	l.saw(r)
	c.asks, c.unsure, c.next = false, c.unsure || unsure, time.Now().Add(pause)
	s.lines.changed(r.Name, l)
}

// took notes a permit of this process.
func (s *store) took(r Resource, h *Permit) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	l := s.lines.line(r.Name)
	h.since = time.Now()
	l.own[h.attr] = h
	l.saw(r)
	s.lines.changed(r.Name, l)
}

// dropped notes that a permit is over, which nobody has passed on.
func (s *store) dropped(h *Permit) {
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	s.lines.drop(h)
}

func (s *permitLines) drop(h *Permit) {
	l := s.of[h.name]
	if l == nil || l.own[h.attr] != h {
		return
	}
	delete(l.own, h.attr)
	l.full = time.Time{}
	if l.seen != nil {
		seen := *l.seen // a copy: who has left the line speaks of that one
		seen.Running--  // as far as we know
		l.seen = &seen
	}
	s.changed(h.name, l)
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

// heir chooses to whom a permit is passed on; without anybody it is given back to the
// table.
func (s *store) heir(h *Permit) (p passing) {
	p.asked = time.Now() // before the end is reckoned: the deadline counts from here
	p.until = s.clock().Add(s.cfg.Lease)
	if h.lease.Cause() != nil { // it has ended, or everything is closed
		return p
	}
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	l := s.lines.of[h.name]
	if l == nil {
		return p
	}
	i := slices.IndexFunc(l.callers, func(c *caller) bool { return c.rests() && !c.unsure })
	if i < 0 {
		return p
	}
	most := handsAlone
	if time.Since(l.others) < contendedFor {
		most = handsContended
	}
	if h.hands >= most || time.Since(h.since) >= s.cfg.Lease/handsOfLease {
		p.yields = true
		return p
	}
	p.to = l.callers[i]
	p.to.chosen = true
	return p
}

// passing is a permit that is given back, and to whom.
type passing struct {
	to           *caller // nil: the table
	yields       bool    // to others: the process stays away
	asked, until time.Time
}

// passedOn says what has become of a permit that was given back, and of who was to have
// it. It returns the permit of one who waits no longer; doubt says that such a one may
// have got it.
func (s *store) passedOn(h *Permit, p passing, res ddb.Result) (unwanted *Permit, doubt bool) {
	r, err := parseResource(h.name, res.Shown(), s.cfg)
	s.lines.mu.Lock()
	defer s.lines.mu.Unlock()
	l := s.lines.line(h.name)
	if c := p.to; c != nil {
		c.chosen = false
		if _, there := r.permits[c.attr]; there && err == nil {
			next := s.newPermit(h.name, c.attr, r.token, p.asked, p.until)
			// An heir is sure, and a copy of this request can do something only if one of the
			// Acquire has brought back what it passes on.
			next.once, next.hands, next.since = h.once, h.hands+1, h.since
			delete(l.own, h.attr)
			if c.left {
				return next, false // the line goes on when that is released
			}
			next.found = res.Outcome != ddb.Applied
			c.got = next
			l.own[c.attr] = next
			l.callers = slices.DeleteFunc(l.callers, func(o *caller) bool { return o == c })
			c.left = true
			l.saw(r)
			signal(c.wake)
			s.lines.changed(h.name, l)
			return nil, false
		}
		unsure := !res.Clean || err != nil
		if doubt = c.left && unsure; !c.left { // who has left reads it without mu
			c.unsure = unsure
		}
	}
	if p.yields {
		l.away = time.Now().Add(stayAway + rand.N(2*stayAway))
	}
	if h.lease.Cause() != nil {
		s.lines.drop(h)
	}
	s.lines.changed(h.name, l)
	return nil, doubt
}

// busy is the error of a caller that has left the line without a permit.
func (c *caller) busy(name string) error {
	if c.seen == nil {
		return fmt.Errorf("resource %q: %w: a caller of this process is before this one: %w", name, ErrBusy, repo.ErrLocked)
	}
	return c.seen.busy()
}

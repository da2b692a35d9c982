package ticket

import (
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// The callers of one Queue, in one process, that want the turn of one entity. Each has a
// ticket of its own and is served by its number, like all others; what they share are
// requests. An answer that shows the queue to one of them shows it to all, so one looks
// for all. Whoever gives its ticket back draws those of them who have just come.
//
// Rejected: one place in the queue for all of them, passed on from hand to hand. Who
// stands in the queue of another process and has come before them would wait for them.
type group struct { // all of it is guarded by the queue's mu
	own      map[string]*Ticket // by id; nil while the request that draws it is under way
	arrivals []*arrival         // in order
	others   bool               // the last answer showed entries of other processes
	seen     line               // that answer
	asked    time.Time          // when it was asked for
}

// lookAtOwn is how often those look who wait behind a turn of their own process: its
// end brings them the news, but for what is done by hand.
const lookAtOwn = time.Second

// group returns that of a queue. The caller holds mu.
func (q *Queue) group(p place) *group {
	c := q.groups[p.label]
	if c == nil {
		c = &group{own: map[string]*Ticket{}}
		q.groups[p.label] = c
	}
	return c
}

// draws notes that a request which draws a ticket is under way.
func (q *Queue) draws(p place, id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.group(p).own[id] = nil
}

// drew notes that it is over. A ticket that it has drawn stands.
func (q *Queue) drew(p place, id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.groups[p.label]; c != nil && c.own[id] == nil {
		q.forget(p, c, id)
	}
}

// forget drops an id, and a group of nobody. The caller holds mu.
func (q *Queue) forget(p place, c *group, id string) {
	delete(c.own, id)
	if len(c.own) == 0 && len(c.arrivals) == 0 {
		delete(q.groups, p.label)
	}
}

// stands notes a ticket. What others have seen while its own answer was under way may
// be later than that.
func (q *Queue) stands(t *Ticket) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.group(t.place)
	c.own[t.id] = t
	if _, present := c.seen.before(t.id, t.number); present {
		t.tell(look{c.seen, time.Now()})
	}
}

// gone drops a ticket that is over: one that is given back only when that is at its end.
// Others may have relied on it for the news that they have not been told.
func (q *Queue) gone(t *Ticket, givenBack, told bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.groups[t.label]; c != nil && c.own[t.id] == t && t.ending == givenBack {
		q.forget(t.place, c, t.id)
		if !told {
			c.wakeFirst()
		}
	}
}

// wakeFirst lets the first who waits look at the queue.
func (q *Queue) wakeFirst(p place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.groups[p.label]; c != nil {
		c.wakeFirst()
	}
}

// wakeFirst is that of the queue. The caller holds mu.
func (c *group) wakeFirst() {
	var first *Ticket
	for _, t := range c.own {
		if t != nil && t.waits() && (first == nil || t.number < first.number) {
			first = t
		}
	}
	if first != nil {
		ddb.Signal(first.news)
	}
}

// waits reports whether a Wait is under way.
func (t *Ticket) waits() bool { return len(t.waiting) > 0 }

// tell shows an answer to all of this process who stand in the queue: to those who have
// come since it was asked for only if it shows them.
func (q *Queue) tell(p place, l line, asked time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.groups[p.label]
	if c == nil {
		return
	}
	seen := look{l, time.Now()}
	for _, t := range c.own {
		if t == nil {
			continue
		}
		if _, present := l.before(t.id, t.number); present || asked.After(t.drawn) {
			t.tell(seen)
		}
	}
	if asked.Before(c.asked) {
		return
	}
	c.seen, c.asked = l, asked
	c.others = slices.ContainsFunc(l.entries, func(e entry) bool { _, own := c.own[e.id]; return !own })
	if c.others { // who waits any longer gives its place away
		for _, a := range c.arrivals {
			close(a.called)
		}
		c.arrivals = nil
	}
}

// relies is how long a ticket may pause because another of its process looks for it, or
// brings it the news; 0: none does. ahead are those before it.
func (q *Queue) relies(t *Ticket, ahead []entry) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.groups[t.label]
	if c == nil {
		return 0
	}
	if first := c.own[ahead[0].id]; first != nil && first.number == ahead[0].number {
		return lookAtOwn
	}
	for _, e := range ahead[1:] {
		if o := c.own[e.id]; o != nil && o.number == e.number && o.waits() {
			return q.cfg.Lease / 3
		}
	}
	return 0
}

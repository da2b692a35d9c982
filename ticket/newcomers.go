package ticket

import (
	"context"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Who comes while another of its process is about to give its ticket back waits for that
// a moment, and is taken along: the same request draws its ticket.

const (
	// together is how long a caller waits for another of its process, which is before it
	// and gives its ticket back, to draw one for it. Longer than that nobody is to come
	// before it who has come to the queue later.
	together = 50 * time.Millisecond
	// maxNewcomers bounds how many one request draws for: expressions are limited in length.
	maxNewcomers = 16
)

// arrival is a caller that waits to be taken along.
type arrival struct {
	ctx    context.Context
	id     string
	called chan struct{} // closed when it need not wait for others any more
	tried  bool          // guarded by the queue's mu: a request takes it along
	got    chan outcome  // what has become of it then
	left   chan struct{} // closed when it does not wait for that any longer
}

// outcome is what a request has brought for one whom it has taken along.
type outcome struct {
	ticket *Ticket // nil: it is to draw for itself
	doubt  bool    // the request may still arrive
}

// ending is what the request that gives a ticket back does for others.
type ending struct {
	newcomers  []*arrival
	told       bool // others of this process wait for news
	now, until time.Time
	asked      time.Time
}

// arrive draws a ticket: with the next request that gives one of this process back, if
// one is expected soon and nobody of another process is there, or else at once.
func (q *Queue) arrive(ctx, grace context.Context, p place) (*Ticket, error) {
	ctx, over, err := q.open.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer over()
	begun := time.Now()
	if a := q.enlist(ctx, p); a != nil {
		timer := time.NewTimer(together)
		defer timer.Stop()
		select {
		case <-a.called:
		case <-timer.C:
		case <-ctx.Done():
		}
		if !q.delist(p, a) {
			if t := q.awaitEntry(ctx, grace, p, a); t != nil {
				return t, nil
			}
		}
		if ctx.Err() != nil {
			return nil, ddb.Join(q.lockedNow(p), ddb.Waited(time.Since(begun), ddb.CtxError(ctx)))
		}
	}
	return q.join(ctx, grace, p, false)
}

// awaitEntry waits for what becomes of a caller that is taken along: a moment longer than
// ctx, for what it asked for is on its way. nil: it has no ticket.
func (q *Queue) awaitEntry(ctx, grace context.Context, p place, a *arrival) *Ticket {
	settle, end := ddb.WithGrace(ctx, ddb.Settle)
	defer end()
	select {
	case d := <-a.got:
		if d.doubt {
			q.abandon(grace, p, a.id)
		}
		return d.ticket
	case <-settle.Done():
		close(a.left)
		return nil
	}
}

// enlist lets a caller wait for another; nil if it should not.
func (q *Queue) enlist(ctx context.Context, p place) *arrival {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.groups[p.label]
	if c == nil || c.others || ctx.Err() != nil {
		return nil
	}
	for _, t := range c.own {
		if t != nil && !t.ending && t.lease.Cause() == nil {
			a := &arrival{ctx: ctx, id: newID(), called: make(chan struct{}), got: make(chan outcome), left: make(chan struct{})}
			c.arrivals = append(c.arrivals, a)
			return a
		}
	}
	return nil
}

// delist takes a caller out of those who wait; false if a request takes it along.
func (q *Queue) delist(p place, a *arrival) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.groups[p.label]; c != nil && !a.tried {
		c.arrivals = slices.DeleteFunc(c.arrivals, func(o *arrival) bool { return o == a })
		q.forget(p, c, a.id)
	}
	return !a.tried
}

// lockedNow is the error that tells who is served, as far as this process knows.
func (q *Queue) lockedNow(p place) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var seen line
	if c := q.groups[p.label]; c != nil {
		seen = c.seen
	}
	return q.locked(p, seen)
}

// ending begins to give a ticket back: it takes along who waits for that.
func (q *Queue) ending(t *Ticket) (e ending) {
	e.asked = time.Now() // before the end is reckoned: the deadlines count from here
	e.now = q.clock()
	e.until = e.now.Add(q.cfg.Lease)
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.groups[t.label]
	again := t.ending
	t.ending = true
	if c == nil {
		return e
	}
	e.told = len(c.own) > 1
	if again || t.lease.Cause() != nil || q.open.Context().Err() != nil {
		return e
	}
	n := min(len(c.arrivals), maxNewcomers)
	e.newcomers = slices.Clone(c.arrivals[:n])
	c.arrivals = slices.Delete(c.arrivals, 0, n)
	for _, a := range e.newcomers {
		a.tried = true
		c.own[a.id] = nil
		close(a.called)
	}
	return e
}

// ended tells all whom it concerns what has become of the request that gave a ticket
// back: first those whom it has taken along, so that they hear what comes after it.
func (q *Queue) ended(ctx context.Context, t *Ticket, e ending, res ddb.Result) {
	image := res.Shown()
	l, err := parse(image)
	known := err == nil && len(image) > 0
	for _, a := range e.newcomers {
		q.entered(ctx, t.place, e, a, l, !known && (err != nil || !res.Clean))
	}
	if known {
		q.tell(t.place, l, e.asked)
	}
	q.gone(t, true, known)
}

// entered hands a ticket to one who was taken along, or says that there is none. Where
// that one has left, nothing of it stays.
func (q *Queue) entered(ctx context.Context, p place, e ending, a *arrival, l line, doubt bool) {
	d := outcome{doubt: doubt}
	if mine, there := l.find(a.id); there {
		d.ticket = q.newTicket(a.ctx, p, mine, l, e.asked)
	} else {
		q.drew(p, a.id)
	}
	select {
	case a.got <- d:
	case <-a.left:
		switch {
		case d.ticket != nil:
			ddb.CleanUp(ctx, func(ctx context.Context) { _ = d.ticket.leave(ctx) })
		case d.doubt:
			ddb.CleanUp(ctx, func(ctx context.Context) { q.abandon(ctx, p, a.id) })
		}
	}
}

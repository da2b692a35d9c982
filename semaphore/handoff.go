package semaphore

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
)

// How often a permit is passed on, and for how long, before it is given back to the
// table, from which the process then stays away for a moment: who waits in another
// process leaves no trace in the row. Less often where others are known to want permits
// of the resource.
const (
	streakAlone     = 8
	streakContended = 4
	partOfLease     = 10 // a permit stays in one process for at most this part of a lease
	contendedFor    = 2 * time.Second
	stayAway        = 10 * time.Millisecond
)

// handoff is a permit that is given back, and to whom.
type handoff struct {
	to           *caller // nil: the table
	backsOff     bool    // to others: the process stays away
	asked, until time.Time
}

// next chooses to whom a permit is passed on; without anybody it is given back to the
// table.
func (s *Semaphore) next(h *Permit) (p handoff) {
	p.asked = time.Now() // before the end is reckoned: the deadline counts from here
	p.until = s.table.Clock().Add(s.cfg.Lease)
	if h.lease.Cause() != nil { // it has ended, or everything is closed
		return p
	}
	q := s.lockQueue(h.name)
	defer s.queuesMu.Unlock()
	i := slices.IndexFunc(q.callers, func(c *caller) bool { return c.rests() && !c.unsure })
	if i < 0 {
		return p
	}
	most := streakAlone
	if time.Since(q.others) < contendedFor {
		most = streakContended
	}
	if h.streak >= most || time.Since(h.since) >= s.cfg.Lease/partOfLease {
		p.backsOff = true
		return p
	}
	p.to = q.callers[i]
	p.to.chosen = true
	return p
}

// handOffWrite is the request that gives a permit back and to another caller of this
// process at once: nobody gets in between. The next token is its own.
func (s *Semaphore) handOffWrite(name, attr string, p handoff) *dynamodb.UpdateItemInput {
	w := s.table.Core.NewWrite()
	w.Remove(attr)
	w.Set(p.to.attr, ddb.Number(ddb.Seconds(p.until)))
	if s.cfg.NamePermits {
		w.Remove(resources.OwnerAttr(attr))
		w.Set(resources.OwnerAttr(p.to.attr), stored.Sign(s.table.Clock(), s.cfg.Owner))
	}
	s.table.HandOver(w, s.table.Clock())
	w.IfExists(attr)
	w.IfAbsent(p.to.attr)
	s.table.If(w, resources.ForTheSame) // a lower limit, or a pause, holds from now on
	in := resources.Update(w, resources.Key(name))
	in.ReturnValues = types.ReturnValueAllNew
	return in
}

// handedOff says what has become of a permit that was given back, and of who was to have
// it. It returns the permit of one who waits no longer; doubt says that such a one may
// have got it.
func (s *Semaphore) handedOff(h *Permit, p handoff, res ddb.Result) (unwanted *Permit, doubt bool) {
	r, err := s.table.Parse(h.name, res.Shown())
	q := s.lockQueue(h.name)
	defer s.queuesMu.Unlock()
	if c := p.to; c != nil {
		c.chosen = false
		if _, there := r.Permits[c.attr]; there && err == nil {
			next := s.newPermit(h.name, c.attr, r.Token, p.asked, p.until)
			// The next one is sure, and a copy of this request can do something only if one of the
			// Acquire has brought back what it passes on.
			next.once, next.streak, next.since = h.once, h.streak+1, h.since
			delete(q.own, h.attr)
			if c.left {
				return next, false // the line goes on when that is released
			}
			next.found = res.Outcome != ddb.Applied
			c.got = next
			q.own[c.attr] = next
			q.callers = slices.DeleteFunc(q.callers, func(o *caller) bool { return o == c })
			c.left = true
			q.saw(r)
			ddb.Signal(c.wake)
			q.changed()
			return nil, false
		}
		unsure := !res.Clean || err != nil
		if doubt = c.left && unsure; !c.left { // who has left reads it without mu
			c.unsure = unsure
		}
	}
	if p.backsOff {
		q.away = time.Now().Add(stayAway + rand.N(2*stayAway))
	}
	if h.lease.Cause() != nil {
		q.drop(h)
	}
	q.changed()
	return nil, doubt
}

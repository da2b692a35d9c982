package semaphore

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

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
)

// passing is a permit that is given back, and to whom.
type passing struct {
	to           *caller // nil: the table
	yields       bool    // to others: the process stays away
	asked, until time.Time
}

// heir chooses to whom a permit is passed on; without anybody it is given back to the
// table.
func (s *store) heir(h *Permit) (p passing) {
	p.asked = time.Now() // before the end is reckoned: the deadline counts from here
	p.until = s.clock().Add(s.cfg.Lease)
	if h.lease.Cause() != nil { // it has ended, or everything is closed
		return p
	}
	l := s.lockLine(h.name)
	defer s.linesMu.Unlock()
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

// passOnWrite is the request that gives a permit back and to another caller of this
// process at once: nobody gets in between. The next token is its own.
func (s *store) passOnWrite(name, attr string, p passing) *dynamodb.UpdateItemInput {
	w := s.core.NewWrite()
	w.Remove(attr)
	w.Set(p.to.attr, ddb.Number(ddb.Seconds(p.until)))
	if s.cfg.NamePermits {
		w.Remove(ownerAttr(attr))
		w.Set(ownerAttr(p.to.attr), stored.Sign(s.clock(), s.cfg.Owner))
	}
	count(w, aChanges, 1)
	s.nextToken(w, s.clock())
	w.IfExists(attr)
	w.IfAbsent(p.to.attr)
	s.ifRoom(w, " <= ") // a lower limit, or a pause, holds from now on
	in := update(w, resourceKey(name))
	in.ReturnValues = types.ReturnValueAllNew
	return in
}

// passedOn says what has become of a permit that was given back, and of who was to have
// it. It returns the permit of one who waits no longer; doubt says that such a one may
// have got it.
func (s *store) passedOn(h *Permit, p passing, res ddb.Result) (unwanted *Permit, doubt bool) {
	r, err := parseResource(h.name, res.Shown(), s.cfg)
	l := s.lockLine(h.name)
	defer s.linesMu.Unlock()
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
			l.changed()
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
		l.drop(h)
	}
	l.changed()
	return nil, doubt
}

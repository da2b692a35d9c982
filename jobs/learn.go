package jobs

import (
	"time"

	"github.com/dynahold/dynahold/internal/resources"
)

// learned is what becomes of a resource of which a look has told.
type learned int

const (
	leftAlone   learned = iota // its workers go on by themselves, or it has nothing to do
	forgotten                  // nothing of it is there
	asWork                     // jobs of it can be started
	asDeadsWork                // its line must be read: holders of what is in the way may be dead
	unchanged                  // it is known anew, and stays where it is
)

// judgeFound tells them. The caller holds mu.
func (d *dispatcher) judgeFound(p *post, r resources.Row, now time.Time) learned {
	empty := r.Queued == 0 && r.Running == 0
	paused := !r.Paused.IsZero()
	switch {
	case p == nil && empty:
		return leftAlone
	case p == nil:
		p = &post{}
	}
	switch {
	case d.goesOn(p, r):
		return leftAlone
	case empty && p.active == 0 && !p.inLine:
		return forgotten
	case paused:
		return unchanged
	case r.Queued > 0 && !r.Full() && !d.s.resting(r):
		return asWork
	case !d.s.toCome(p.until, now) && d.s.mayBeDead(r, now):
		return asDeadsWork
	}
	return unchanged
}

// goesOn reports whether nothing needs to be learned of a resource. The caller holds mu.
func (d *dispatcher) goesOn(p *post, r resources.Row) bool {
	return p.starting || p.active >= r.Limit || d.leaves(p)
}

// upToDate is a resource as a look has read it, which began after so many moves: what it has
// read may be from before those that followed. Of two numbers that is believed which lets a
// job start; the condition of its start decides.
func (p *post) upToDate(r resources.Row, began int) resources.Row {
	if p == nil || p.moved <= began {
		return r
	}
	r.Queued = max(r.Queued, p.now.Queued)
	if p.now.Limit > 0 { // else nobody has seen how many run
		r.Running = max(min(r.Running, p.now.Running), len(r.Permits))
	}
	return r
}

// learn takes in what a look has told of a resource, which began after so many moves.
func (d *dispatcher) learn(r resources.Row, began int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.s.table.Clock()
	r = d.posts[r.Name].upToDate(r, began)
	said := d.judgeFound(d.posts[r.Name], r, now)
	if said == leftAlone {
		return
	}
	p := d.at(r.Name)
	p.aside = false
	if said == forgotten {
		delete(d.posts, r.Name)
		return
	}
	p.now = r
	if said == asDeadsWork {
		p.until, p.check = now.Add(d.s.cfg.Lease/3), !p.inLine
	}
	if (said == asWork || p.check) && !p.inLine {
		p.looked = true
		d.push(p)
	}
}

// mayBeDead reports whether the holder of a job that runs, or of a permit that is in the
// way, may be dead. Of a job only the line tells.
func (s *store) mayBeDead(r resources.Row, now time.Time) bool {
	for _, p := range r.Permits {
		if r.Queued > 0 && s.table.Dead(p.Until, now) {
			return true
		}
	}
	if r.Jobs() == 0 || s.resting(r) {
		return false
	}
	// The token is the time of the last start: where one runs at most, of the one that does.
	return r.Limit > 1 || r.Jobs() > 1 || !s.toCome(time.UnixMicro(r.Token).Add(s.cfg.Lease+s.cfg.ClockSkew), now)
}

// toCome reports whether a time is still to come that was at most a lease ahead when it was
// noted. One that is further ahead is of a clock that was, and says nothing.
func (s *store) toCome(at, now time.Time) bool {
	return now.Before(at) && at.Sub(now) <= s.cfg.Lease+2*s.cfg.ClockSkew
}

// leaves reports whether a resource was left aside, and is still. The caller holds mu.
func (d *dispatcher) leaves(p *post) bool { return p.aside && d.s.toCome(p.until, d.s.table.Clock()) }

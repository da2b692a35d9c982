// Package pace tells one who waits in a line when to look at it again: in time
// for its turn, but not more often. Whoever is next looks often, those behind
// it by the time that the line will need.
package pace

import "time"

// Line says how a kind of line is looked at.
type Line struct {
	Near     int           // so many ahead and fewer: next in line
	Min, Max time.Duration // of the pauses of who is next in line
	Limit    time.Duration // of the pauses of those behind
	Quarters int           // of the time until one is next: how far the others sleep
}

// Pace estimates how long a turn takes, from looks at the line.
type Pace struct {
	Turn time.Duration // the estimate; 0: not known. Who waited before may begin with what it learned

	ahead int
	last  time.Time     // of the last look
	since time.Duration // from the look before to the last
	moved time.Time     // when the line was last seen to have moved
}

// See notes what a look showed: how many are ahead.
func (p *Pace) See(ahead int, now time.Time) {
	if p.moved.IsZero() {
		p.ahead, p.moved, p.last = ahead, now, now
		return
	}
	p.since, p.last = now.Sub(p.last), now
	if ahead >= p.ahead {
		return
	}
	// Counted from the last look, not from the last move: a line that stood still
	// and then runs must not be taken for a slow one, for whoever looks too late
	// makes it slow. For the same reason the estimate falls at once and rises
	// slowly: to look too often costs a read, to look too late everybody's time.
	sample := p.since / time.Duration(p.ahead-ahead)
	if p.Turn == 0 || sample < p.Turn {
		p.Turn = sample
	} else {
		p.Turn += (sample - p.Turn) / 8
	}
	p.ahead, p.moved = ahead, now
}

// Delay is when to look again with so many live ones ahead.
func (p *Pace) Delay(ahead int, now time.Time, l Line) time.Duration {
	since := now.Sub(p.moved) / 8
	if ahead <= l.Near {
		return max(l.Min, min(since, l.Max))
	}
	// Only a part of the time until it is next: if the line moves faster than it
	// did, that is noticed, for a number of looks that grows with the logarithm.
	// Never more than twice the last pause: one look may have met the end of a
	// long turn.
	d := max(since, l.Min)
	if p.Turn > 0 {
		d = max(d, time.Duration(ahead-l.Near)*p.Turn*time.Duration(l.Quarters)/4)
	}
	if p.since > 0 || p.Turn == 0 {
		d = min(d, max(2*p.since, l.Min))
	}
	return max(l.Min, min(d, l.Limit))
}

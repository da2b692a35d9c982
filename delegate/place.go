package delegate

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/delegation"
)

// place is what a process knows of an item beyond one call: its slot, with the last number
// that it has used, and who leads.
type place struct {
	slot   string
	shards int // of which it was chosen
	seq    int64
	// settled says that what became of the last number is known, and that nothing more can.
	settled   bool
	throttled bool // its partition of mail has refused to take that number at once

	first time.Duration       // until the first look for answers
	trip  time.Duration       // of a request, lately
	deaf  string              // who led and did not know our commands
	vain  int                 // how often lately a leader was taken for gone that was at work
	seen  delegation.Evidence // without its slots
	at    time.Time           // when that was
}

// sees notes who leads.
func (p *place) sees(d delegation.Evidence) {
	d.Slots = nil
	p.seen, p.at = d, time.Now()
}

// leads is who is likely to lead yet; without a Lead, if nobody is.
func (p *place) leads() delegation.Evidence {
	if time.Since(p.at) > believed {
		return delegation.Evidence{}
	}
	return p.seen
}

// believed is for how long who led is taken for leading yet: a mail that nobody takes out is
// found to be so within a look.
const believed = time.Second

// number gives a batch a number in the slot of this process, which is decided before there
// is another.
func (l *line) number(b *batch, life string, shards int) {
	if b.seq > 0 {
		return
	}
	switch {
	case l.slot == "" || l.shards != shards || !delegation.MaySend(l.seq, l.settled):
		l.slot, l.shards, l.seq = newSlot(shards), shards, 0
	case l.throttled:
		l.slot = inAnother(l.slot, shards)
	}
	l.throttled = false
	l.seq++
	l.settled = false
	b.seq, b.life = l.seq, life
}

// row is what the row of a batch's mail says while it is there.
func (l *line) row(b *batch) delegation.Mail {
	return delegation.Mail{Slot: l.slot, Seq: b.seq, Life: b.life}
}

// took notes how long a request has taken. One that has stalled says little of the others.
func (p *place) took(trip time.Duration) {
	most := longestTrip
	if p.trip > 0 {
		most = min(most, 4*p.trip)
	}
	p.trip = mean(p.trip, min(trip, most))
}

// longestTrip is what a request takes at most that has not stalled. After one of ten seconds
// a leader without work had stayed for a minute, looking for mail all the time.
const longestTrip = 250 * time.Millisecond

// goneAfter is for how long an item does not move whose leader is taken for gone: where all
// requests take long, a leader's do, too.
//
// What else a round takes, such as commands that take long, nobody sees before: who was
// wrong about a leader waits twice as long the next time.
func (p *place) goneAfter(chance float64) time.Duration {
	return time.Duration(float64(max(stalled, stalledTrips*p.trip)<<p.vain) * (1 + chance))
}

// mostVain bounds how much longer a process waits that was wrong: 16 times.
const mostVain = 4

// overtook notes whether the leader that was taken for gone has written meanwhile.
func (p *place) overtook(vainly bool) {
	switch {
	case vainly:
		p.vain = min(mostVain, p.vain+1)
	case p.vain > 0:
		p.vain--
	}
}

// patience is for how long a leader may pass a mail over.
func (p *place) patience() time.Duration { return max(patience, patienceTrips*p.trip) }

// stays is how long a leader stays without anything to do: senders who were answered come
// back in that time.
func (p *place) stays() time.Duration { return max(idle, stalledTrips*p.trip) }

// lateTrips is after how many requests' time an answer is late.
const lateTrips = 1.5

// late is after how long it is. A write of the leader is sent once more then: all wait for it.
// For a post one sender waits, and each costs a unit.
func (p *place) late() time.Duration { return time.Duration(lateTrips * float64(p.trip)) }

// hedge is a write that is sent once more after a while.
func (e *engine) hedge(after time.Duration) ddb.Hedge {
	return ddb.Hedge{After: after, Budget: &e.hedges}
}

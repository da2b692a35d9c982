package transaction

import (
	"context"
	"sync"
	"time"
)

// Transactions of one process that want the same items refuse each other, as those of two
// processes do. But here they can be told apart before they send anything: one that was
// refused goes on when none of the others that were is at its items. So a process comes
// to wanted items with one transaction, however many callers it has, as in CAR-STM
// (Dolev, Hendler, Suissa, PODC 2008).
//
// That is a courtesy, and no verdict stands on it: who was not refused goes on at once, and
// nobody waits for longer than patience.

// patience bounds how long a transaction waits for others of its process: one of them may
// be slow, or wait for this one.
const patience = 600 * time.Millisecond

// overtaken is how many others may go before one that came earlier: those that want
// nothing of what is taken do, until one was passed over so often.
const overtaken = 16

// spot is an item, of a client.
type spot struct {
	client any
	place  string
}

// pass lets a transaction at its items.
type pass struct {
	spots  []spot
	given  chan struct{} // closed: it is given
	passed int           // others that came later, wanted some of the same, and went before
}

// admission gives the passes of this process.
type admission struct {
	mu      sync.Mutex
	taken   map[spot]bool // guarded by mu
	waiting []*pass       // guarded by mu: in the order of coming
}

var passes = admission{taken: map[spot]bool{}}

// ask waits for a pass, which ends with its return whether it was given or not; waited says
// that time has passed.
func (a *admission) ask(ctx context.Context, spots []spot) (p *pass, waited bool) {
	p = &pass{spots: spots, given: make(chan struct{})}
	a.mu.Lock()
	a.waiting = append(a.waiting, p)
	a.admit()
	a.mu.Unlock()
	select {
	case <-p.given:
		return p, false
	default:
	}
	enough := time.NewTimer(patience)
	defer enough.Stop()
	select {
	case <-p.given:
	case <-enough.C:
	case <-ctx.Done():
	}
	return p, true
}

// end gives a pass back.
func (a *admission) end(p *pass) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-p.given:
		for _, s := range p.spots {
			delete(a.taken, s)
		}
	default:
		a.waiting = without(a.waiting, p)
	}
	a.admit()
}

// followed reports whether others wait for a pass that this one is in the way of.
func (a *admission) followed(p *pass) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range a.waiting {
		if w != p && w.wantsOf(p.set()) {
			return true
		}
	}
	return false
}

// admit gives passes to those who can have them now. It is called with mu locked.
func (a *admission) admit() {
	var given []*pass
	given, a.waiting = next(a.waiting, a.taken)
	for _, p := range given {
		close(p.given)
	}
}

// next decides who of those that wait is given a pass, and takes its items. Those before
// it that want some of the same are passed over; who was often is not any more.
func next(waiting []*pass, taken map[spot]bool) (given, rest []*pass) {
	kept := map[spot]bool{} // for those who were passed over often
	for _, p := range waiting {
		if p.wantsOf(taken) || p.wantsOf(kept) {
			rest = append(rest, p)
			if p.passed >= overtaken {
				p.addTo(kept)
			}
			continue
		}
		given = append(given, p)
		p.addTo(taken)
		mine := p.set()
		for _, earlier := range rest {
			if earlier.wantsOf(mine) {
				earlier.passed++
			}
		}
	}
	return given, rest
}

func (p *pass) wantsOf(spots map[spot]bool) bool {
	for _, s := range p.spots {
		if spots[s] {
			return true
		}
	}
	return false
}

func (p *pass) addTo(spots map[spot]bool) {
	for _, s := range p.spots {
		spots[s] = true
	}
}

func (p *pass) set() map[spot]bool {
	spots := make(map[spot]bool, len(p.spots))
	p.addTo(spots)
	return spots
}

func without(all []*pass, p *pass) (rest []*pass) {
	for _, w := range all {
		if w != p {
			rest = append(rest, w)
		}
	}
	return rest
}

package transaction

import (
	"math"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// pause is how long a transaction sleeps after others have refused a request of its own.
//
// How often that happened lately to the transactions of this process says how many want the
// items, and the bound of the random sleep grows by its square: where it is once or twice,
// others are gone after a moment, and each millisecond is lost; where it is five times,
// each try stands in the way of all others, and costs as much as one that succeeds.
// Transactions wait for less then, and so do those who sleep: what is learned falls again.
// Who has been refused twice as often as is usual sleeps for less, so that it goes before
// who comes: else who has lost often goes on losing. Who has been refused much more often
// stands behind a request that takes very long, and each try is in vain.
//
// What is usual counts for so much at most: where all are refused a dozen times, sleeps by its
// square leave the items idle. Beyond that the tries of the call tell.
//
// Rejected: bounds by the tries of the call alone. Those that are good for items which
// all want make the tail of rare conflicts twice as long.
type pause struct {
	least, most time.Duration
	taken       int
}

// situation is that in which a transaction sleeps.
type situation struct {
	usual    float64 // how often transactions are refused at the items, lately
	tries    int     // how often this one was
	reading  int     // so many items by one request; 0: it was no reading
	followed bool    // others wait for what the call holds, or behind it in its process
}

const (
	square    = 2 * time.Millisecond // the bound where a transaction is refused once
	mostUsual = 3.25                 // of others' refusals lengthen a sleep: beyond that the own tell more
	unlucky   = 2                    // times the usual
	forThem   = 0.4                  // of the bound
	stuck     = 5                    // times the usual: somebody's request there takes very long
	manyTries = 80                   // at least before that is believed
	toBelieve = 8                    // refusals of its own: a process that knows nothing yet learns from them
	whenLed   = 2                    // times the least bound: of who has others behind it
	outweighs = 32                   // calls, of a new one in what is usual
)

// next is the length of the next sleep.
func (p *pause) next(at situation) time.Duration {
	return time.Duration(rand.Int64N(int64(p.bound(at)) + 1))
}

// bound is that of the next sleep, which it counts. A request that reads is refused if
// others are at any of its items, and billed for all of them.
func (p *pause) bound(at situation) time.Duration {
	taken := float64(p.taken)
	p.taken++
	usual := max(at.usual, float64(at.tries)/toBelieve)
	switch {
	case taken >= max(manyTries, stuck*usual):
		return p.most
	case at.followed: // they send no other request there meanwhile
		return min(whenLed*p.least, p.most)
	}
	refusals := max(min(at.usual, mostUsual), float64(at.tries)/toBelieve)
	bound := float64(square) * refusals * refusals * max(1, float64(at.reading)/2)
	bound = min(bound, float64(p.most))
	if taken > unlucky*usual {
		bound *= forThem
	}
	return max(time.Duration(bound), p.least)
}

// learn takes in how often a transaction was refused. One that stood behind a request which
// takes very long says little of how many want the items.
func learn(usual *atomic.Uint64, times int) {
	before := usualOf(usual) // what another one learns at this moment may be lost
	usual.Store(math.Float64bits(before + (min(float64(times), stuck*before+toBelieve)-before)/outweighs))
}

func usualOf(usual *atomic.Uint64) float64 { return math.Float64frombits(usual.Load()) }

package lease

import (
	"sync"
	"time"
)

// Bounds on the renewals of a process.
const (
	// catchUp is how much faster than they fall due on average renewals may start:
	// what is due at one moment is spread over 1/catchUp of an interval.
	catchUp = 2
	// leastRate may start in a second however few leases there are.
	leastRate = 500
	// mostUnderWay is how many may wait for an answer. A service that does not
	// answer must not be met by a goroutine and a connection for every lease.
	mostUnderWay = 1000
)

// limiter gives out the slots in which renewals start. It keeps no goroutine, no
// timer and no queue: whoever is due gets a time, and waits with its own timer.
type limiter struct {
	mu       sync.Mutex
	leases   int       // guarded by mu: leases that are renewed
	rate     float64   // guarded by mu: renewals a second that they need on average
	next     time.Time // guarded by mu: when the next slot begins
	underWay int       // guarded by mu
}

// process is the limiter of all leases: they share one network and, mostly, one
// table.
var process limiter

// join counts a lease that is renewed at this interval, until it leaves.
func (p *limiter) join(every time.Duration) { p.count(1, every) }

func (p *limiter) leave(every time.Duration) { p.count(-1, every) }

func (p *limiter) count(n int, every time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases += n
	p.rate += float64(n) / every.Seconds()
	if p.leases == 0 {
		p.rate = 0 // of what adding and taking off has left
	}
}

// slot returns how long to wait for the next slot.
func (p *limiter) slot(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	gap := time.Duration(float64(time.Second) / max(leastRate, catchUp*p.rate))
	at := now
	// A lease has one slot at a time. That more slots than leases seem to be out
	// means that the clock was set back, or that leases ended: begin anew.
	if p.next.After(now) && !p.next.After(now.Add(time.Duration(p.leases)*gap)) {
		at = p.next
	}
	p.next = at.Add(gap)
	return at.Sub(now)
}

// begin reports whether a renewal may start now; end follows if so. One that
// cannot wait may always: it comes once, and after a request of its own.
func (p *limiter) begin(now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underWay >= mostUnderWay && !now {
		return false
	}
	p.underWay++
	return true
}

func (p *limiter) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.underWay--
}

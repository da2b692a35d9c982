package repotest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until the test moves it, for
// [repo.TableConfig].Clock:
//
//	var clock repotest.Clock
//	table, err := repo.NewTable[account](client, "accounts", repo.TableConfig{Clock: clock.Now})
//
// The zero value shows the time at which it was first asked. It is safe for concurrent
// use. Give one clock to all that a test opens: two of them are two machines whose
// clocks differ.
//
// What an Advance does: leases end by it, delayed jobs are due, ids of operations are
// forgotten, items past their TTL are left out of reads that ask for it. To those who hold
// something it is as if their machine had been suspended for so long: their contexts end
// if the lease is over, and what renews by itself is renewed if it is not. Whoever waits
// for one of these looks again within 10 ms.
//
// What it does not do: the pauses between attempts of a request, time-outs, deadlines of
// contexts, and takeovers under Clockless, which are judged by watching for a whole lease,
// take their time. The service removes nothing by TTL.
type Clock struct {
	mu     sync.Mutex
	stands bool      // guarded by mu: it was asked, or set
	now    time.Time // guarded by mu
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read()
}

// read is Now, in milliseconds, as ends of leases are stored. The caller holds mu.
func (c *Clock) read() time.Time {
	if !c.stands {
		c.stands, c.now = true, time.Now().Truncate(time.Millisecond).Round(0)
	}
	return c.now
}

// Set sets the clock, forward or back.
func (c *Clock) Set(to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stands, c.now = true, to.Round(0) // without the machine's own clock
}

// Advance moves the clock on by d, or back if d is negative, and returns what it shows
// then.
func (c *Clock) Advance(d time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.read().Add(d)
	return c.now
}

package lock

import (
	"cmp"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Config says how a taker takes and keeps. Its owner has checked it.
type Config struct {
	Kind       string // for telemetry
	Owner      string
	Lease      time.Duration // 0: a hold never ends by itself
	Every      time.Duration // renew this long after the last success; 0: never
	Skew       time.Duration // how much clocks may differ
	Clockless  bool
	LateCommit bool
	Fair       bool // wait in the queue on the item
	Wait       repo.Wait
	Clock      func() time.Time // nil: the table's
	// Patience is what those who wait reckon with in the place of a lease that is short for
	// the sake of others; 0: with the lease.
	Patience time.Duration
}

// endlessSpan is what is reckoned from the lease of a hold that has none: the usual lease.
const endlessSpan = 30 * time.Second

// span is the lease, or what takes its place where those who wait reckon with it: for
// graces, and for how long a waiter bears to hear nothing.
func (c *Config) span() time.Duration { return cmp.Or(c.Patience, c.Lease, endlessSpan) }

// until is when others may take over what is taken now.
func (c *Config) until(now time.Time) time.Time {
	if c.Lease == 0 {
		return ddb.Never()
	}
	return now.Add(c.Lease)
}

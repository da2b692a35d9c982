package lock

import (
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

const maxMargin = time.Second

// Config says how a taker takes and keeps. Its owner has checked it.
type Config struct {
	Owner      string
	Lease      time.Duration // 0: a hold never ends by itself
	Every      time.Duration // renew this long after the last success; 0: never
	Skew       time.Duration // how much clocks may differ
	Clockless  bool
	LateCommit bool
	Fair       bool // wait in the queue on the item
	Wait       repo.Wait
	Clock      func() time.Time
}

// Margin is taken off a lease for the holder's own deadline.
func Margin(d time.Duration) time.Duration { return min(d/10, maxMargin) }

// until is when others may take over what is taken now.
func (c *Config) until(now time.Time) time.Time {
	if c.Lease == 0 {
		return ddb.Never()
	}
	return now.Add(c.Lease)
}

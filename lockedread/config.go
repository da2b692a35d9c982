package lockedread

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a locker. The zero value works and is the safest.
type Config struct {
	// Lease is how long a hold lasts if it is not extended. Default 30 s, at
	// least 1 s, at most 24 h.
	Lease time.Duration
	// Renew extends a hold by itself, from a third of the lease on, while it
	// is held: no goroutine and no request for shorter holds. Leave it off in
	// functions that freeze between calls.
	Renew bool
	// Owner names the holder to others. Default: host name and process id.
	Owner string
	// ClockSkew is how much clocks may differ: a hold is overtaken only when
	// it is past its end by more. Default 1 s; use 1 ns for none.
	ClockSkew time.Duration
	// Clockless takes over only after watching the unchanged hold for its full
	// lease on the own clock. Clocks may then differ by any amount.
	Clockless bool
	// LateCommit accepts a commit after the lease ran out if nobody took over.
	// Off: such a commit fails with ErrLockExpired, as in the article.
	LateCommit bool
	// Wait bounds the waiting for an item that others hold.
	Wait repo.Wait
}

const (
	defaultLease = 30 * time.Second
	minLease     = time.Second
	maxLease     = 24 * time.Hour
	maxOwner     = 256
	maxMargin    = time.Second
)

func (c Config) withDefaults() (Config, error) {
	var err error
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Lease < minLease || c.Lease > maxLease {
		return c, fmt.Errorf("%w: Lease is %v: use %v to %v", repo.ErrConfig, c.Lease, minLease, maxLease)
	}
	if c.ClockSkew, err = repo.ClockSkew(c.ClockSkew); err != nil {
		return c, err
	}
	if c.Owner == "" {
		host, _ := os.Hostname() // an unnamed host is named by its process alone
		c.Owner = host + "/" + strconv.Itoa(os.Getpid())
	}
	if len(c.Owner) > maxOwner {
		return c, fmt.Errorf("%w: Owner has %d bytes: use at most %d, it is stored on the item", repo.ErrConfig, len(c.Owner), maxOwner)
	}
	c.Wait, err = c.Wait.WithDefaults()
	return c, err
}

// margin is taken off the lease for the holder's own deadline.
func (c Config) margin() time.Duration { return min(c.Lease/10, maxMargin) }

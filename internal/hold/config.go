package hold

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

// Bounds of leases.
const (
	DefaultLease = 30 * time.Second
	minLease     = time.Second
	maxLease     = 24 * time.Hour
	maxOwner     = 256
	maxMargin    = time.Second
)

// defaultAttempt bounds one attempt of a request, as TableConfig says.
const defaultAttempt = 10 * time.Second

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

// Lease fills in the default and refuses what makes no sense.
func Lease(d time.Duration) (time.Duration, error) {
	if d == 0 {
		return DefaultLease, nil
	}
	if d < minLease || d > maxLease {
		return 0, fmt.Errorf("%w: Lease is %v: use %v to %v", repo.ErrConfig, d, minLease, maxLease)
	}
	return d, nil
}

// AttemptTimeout fills in the default for the time of one attempt, and refuses
// one of which three do not fit into a lease: one lost answer could end it.
func AttemptTimeout(lease, d time.Duration) (time.Duration, error) {
	switch {
	case d < 0:
		return 0, fmt.Errorf("%w: AttemptTimeout is negative (%v)", repo.ErrConfig, d)
	case lease > 0 && d > lease/3:
		return 0, fmt.Errorf("%w: Lease (%v) is shorter than three times Table.AttemptTimeout (%v): one lost answer could end it", repo.ErrConfig, lease, d)
	case d == 0 && lease > 0:
		return min(defaultAttempt, lease/3), nil
	}
	return d, nil
}

// Owner fills in the default, host name and process id, and refuses what is
// too long to be kept on items.
func Owner(name string) (string, error) {
	if name == "" {
		host, _ := os.Hostname() // an unnamed host is named by its process alone
		name = host + "/" + strconv.Itoa(os.Getpid())
	}
	if len(name) > maxOwner {
		return "", fmt.Errorf("%w: Owner has %d bytes: use at most %d, it is stored on the item", repo.ErrConfig, len(name), maxOwner)
	}
	return name, nil
}

// Margin is taken off a lease for the holder's own deadline.
func Margin(d time.Duration) time.Duration { return min(d/10, maxMargin) }

func (c *Config) lease(failed func(error)) lease.Config {
	return lease.Config{Length: c.Lease, Every: c.Every, Margin: Margin(c.Lease), Failed: failed}
}

// until is when others may take over what is taken now.
func (c *Config) until(now time.Time) time.Time {
	if c.Lease == 0 {
		return ddb.Never()
	}
	return now.Add(c.Lease)
}

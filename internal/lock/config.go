package lock

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
// too long to be kept on items, or would not come back as it was given: a holder
// that cannot read its own name does not know its own locks.
func Owner(name string) (string, error) {
	if name == "" {
		host, _ := os.Hostname() // an unnamed host is named by its process alone
		return ownName(host, os.Getpid()), nil
	}
	switch {
	case len(name) > maxOwner:
		return "", fmt.Errorf("%w: Owner has %d bytes: use at most %d, it is stored on the item", repo.ErrConfig, len(name), maxOwner)
	case !utf8.ValidString(name):
		return "", fmt.Errorf("%w: Owner %q is not valid UTF-8, which is all that DynamoDB keeps in strings", repo.ErrConfig, name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", fmt.Errorf("%w: Owner %q contains control characters: it is shown in errors and logs", repo.ErrConfig, name)
	}
	return name, nil
}

// ownName is the owner's name made of what the system says: it is nobody's
// setting, so it is cleaned, not refused.
func ownName(host string, pid int) string {
	host = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return '?'
		}
		return r
	}, host)
	name := "/" + strconv.Itoa(pid)
	for len(host)+len(name) > maxOwner {
		_, size := utf8.DecodeLastRuneInString(host)
		host = host[:len(host)-size]
	}
	return host + name
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

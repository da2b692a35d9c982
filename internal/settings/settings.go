// Package settings has what the configurations of all packages have in common:
// lease, owner, clock, waiting, counts. A setting means the same everywhere, has
// the same default and is refused with the same words.
//
// The rule for all of them: 0 is the default; what makes no sense is an error at
// construction, never a surprise later. Where "none" makes sense and 0 is taken, it
// is any negative value, as in net.Dialer.KeepAlive.
package settings

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// Of a lease.
const (
	DefaultLease = 30 * time.Second
	MaxLease     = 24 * time.Hour
	minLease     = time.Second
)

// Of waiting for an item that others hold or write.
const (
	LeastWait = 5 * time.Millisecond
	mostWait  = 500 * time.Millisecond
)

const (
	defaultSkew    = time.Second
	defaultAttempt = 10 * time.Second // as TableConfig says
)

// Fill is one setting: it fills in its default, or says what is wrong with it.
type Fill func() error

// FillAll fills in settings, in their order, up to the first that is wrong.
func FillAll(fills ...Fill) error {
	for _, fill := range fills {
		if err := fill(); err != nil {
			return err
		}
	}
	return nil
}

// Queue is whether those who wait stand in a queue, which is the default, or race.
func Queue(race, fair bool) Fill {
	return func() error {
		if race && fair {
			return fmt.Errorf("%w: Race and Fair: to try again at random times, or to wait in a queue: choose one", repo.ErrConfig)
		}
		return nil
	}
}

// FailLocked makes the first try at what somebody holds the only one.
func FailLocked(fail bool, w *repo.Wait) Fill {
	return func() error {
		switch {
		case !fail:
			return nil
		case w.Attempts > 1:
			return fmt.Errorf("%w: FailLocked and Wait.Attempts (%d): to give up at once, or to try again: choose one", repo.ErrConfig, w.Attempts)
		case w.Attempts == 0:
			w.Attempts = 1
		}
		return nil
	}
}

// Lease is for how long something is held that is not extended.
func Lease(d *time.Duration) Fill {
	return func() error {
		if *d == 0 {
			*d = DefaultLease
		}
		if *d < minLease || *d > MaxLease {
			return fmt.Errorf("%w: Lease is %v: use %v to %v", repo.ErrConfig, *d, minLease, MaxLease)
		}
		return nil
	}
}

// AttemptTimeout bounds one attempt of a request. Three must fit into a lease: one
// lost answer could end it. A lease of 0 has no end.
func AttemptTimeout(d, lease *time.Duration) Fill {
	return func() error {
		switch {
		case *lease > 0 && *d > *lease/3:
			return fmt.Errorf("%w: Lease (%v) is shorter than three times Table.AttemptTimeout (%v): one lost answer could end it", repo.ErrConfig, *lease, *d)
		case *d == 0 && *lease > 0:
			*d = min(defaultAttempt, *lease/3)
		}
		return nil
	}
}

// ClockSkew is how much the clocks of programs may differ; negative: not at all. Ends move
// by twice of it, so it has a bound.
func ClockSkew(d *time.Duration) Fill {
	return func() error {
		switch {
		case *d < 0:
			*d = 0
			return nil
		case *d > MaxLease:
			return fmt.Errorf("%w: ClockSkew is %v: use %v at most", repo.ErrConfig, *d, MaxLease)
		}
		return Default("ClockSkew", d, defaultSkew)()
	}
}

// Wait bounds the waiting for others; least is the default of its Min.
func Wait(w *repo.Wait, least time.Duration) Fill {
	return func() error {
		if w.Attempts < 0 {
			return negative("Wait.Attempts", w.Attempts)
		}
		return Bounds("Wait", &w.Min, &w.Max, least, mostWait)()
	}
}

// Sleeps is Wait where no number of tries ends the waiting, but something else does.
func Sleeps(w *repo.Wait, least time.Duration, instead string) Fill {
	return func() error {
		if w.Attempts != 0 {
			return fmt.Errorf("%w: Wait.Attempts is %d, which bounds nothing here: use %s", repo.ErrConfig, w.Attempts, instead)
		}
		return Wait(w, least)()
	}
}

// longest bounds all sleeps: they are added up, and doubled.
const longest = 365 * 24 * time.Hour

// Bounds are the least and the greatest of sleeps that grow, with their defaults. More
// than a year is a year.
func Bounds(name string, least, most *time.Duration, defaultLeast, defaultMost time.Duration) Fill {
	return func() error {
		if err := FillAll(Default(name+".Min", least, 0), Default(name+".Max", most, 0)); err != nil {
			return err
		}
		if *least == 0 {
			*least = defaultLeast
			if *most > 0 {
				*least = min(*least, *most)
			}
		}
		if *most == 0 {
			*most = max(defaultMost, *least)
		}
		*least, *most = min(*least, longest), min(*most, longest)
		if *most < *least {
			return fmt.Errorf("%w: %s.Max (%v) is less than %s.Min (%v)", repo.ErrConfig, name, *most, name, *least)
		}
		return nil
	}
}

// Default is any other number or time that cannot be negative. A time of less than a
// millisecond is one whose unit was forgotten.
func Default[N ~int | ~int64](name string, n *N, value N) Fill {
	return func() error {
		if *n < 0 {
			return negative(name, *n)
		}
		if d, is := any(*n).(time.Duration); is && d > 0 && d < time.Millisecond {
			return fmt.Errorf("%w: %s is %v: use a millisecond at least", repo.ErrConfig, name, d)
		}
		if *n == 0 {
			*n = value
		}
		return nil
	}
}

func negative(name string, value any) error {
	return fmt.Errorf("%w: %s is negative (%v)", repo.ErrConfig, name, value)
}

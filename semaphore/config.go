package semaphore

import (
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

var (
	// ErrBusy is why no permit could be had: the limit of the resource is used up, or it
	// is paused. Nothing was written. See [BusyError]. Of Forget: the resource is in use.
	ErrBusy = telemetry.Busy
	// ErrClosed is why a closed semaphore takes no permit. Nothing is held.
	ErrClosed = telemetry.NewError("closed", "semaphore is closed")
)

// BusyError says how a resource is used.
type BusyError struct {
	Resource       string
	Running, Limit int
	Paused         time.Time // since when the resource is paused; zero: it is not
}

func (e *BusyError) Error() string {
	if !e.Paused.IsZero() {
		return fmt.Sprintf("resource %q is paused since %s", e.Resource, e.Paused.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("resource %q is busy: %d running, its limit is %d", e.Resource, e.Running, e.Limit)
}

// Is makes errors.Is true for ErrBusy, and for repo.ErrLocked, which is what a
// semaphore of one is to those who wait.
func (e *BusyError) Is(target error) bool { return target == ErrBusy || target == repo.ErrLocked }

// Config are the settings of a semaphore. The zero value works and is the
// safest.
type Config struct {
	// Limit is how many permits and running jobs a resource may have at once.
	// SetLimit on a resource goes before it. Where programs have different
	// Limits, as while a new version is rolled out, each goes by its own, so
	// there are never more than the largest of them, and the new one holds as
	// soon as the last program with the old one has ended. The row shows the
	// limit of the program that last wrote it; a program without a Limit goes by
	// that. Default: what the resource has; 1 for a new one.
	Limit int
	// Lease is how long a permit lasts if it is not renewed; it is renewed by itself
	// from a third of it on. Default 30 s, at least 1 s, at most 24 h.
	Lease time.Duration
	// Owner names the holder to others. Default: host name and process id.
	Owner string
	// NamePermits lets a permit say who took it, by Owner, and when: [Semaphore.Permits]
	// shows it. Every request on the resource bills it: the length of the Owner and 28
	// bytes for each permit. Default: permits are known by their ids only.
	NamePermits bool
	// ClockSkew is how much clocks may differ: what has ended is taken over
	// only when it is past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the waiting for permits, and for others who change the same
	// resource; Attempts counts tries at the table. Default 5 ms to 500 ms.
	Wait repo.Wait

	// Table has the attempt time-out of requests, logger, meter and tracer. Three
	// attempts must fit into a lease; by default they do. Of its Attributes none
	// but TTL matters.
	Table repo.TableConfig
}

func (c Config) withDefaults() (Config, error) {
	if c.Limit > resources.MaxCount {
		return c, fmt.Errorf("%w: Limit is %d: use at most %d", repo.ErrConfig, c.Limit, resources.MaxCount)
	}
	err := settings.FillAll(
		settings.Default("Limit", &c.Limit, 0),
		settings.Lease(&c.Lease),
		settings.Owner(&c.Owner),
		settings.ClockSkew(&c.ClockSkew),
		settings.Wait(&c.Wait, settings.LeastWait),
		settings.AttemptTimeout(&c.Table.AttemptTimeout, &c.Lease),
	)
	return c, err
}

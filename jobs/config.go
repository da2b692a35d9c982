package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Client is what a queue needs of *dynamodb.Client. It gets no more methods
// without a new major version of this module.
type Client interface {
	repo.Client
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

var (
	// ErrBusy is why no job could be had: the limit of the resource is used up, or it is
	// paused. Nothing was written. See [BusyError]. Of Forget and ForgetSchedule: it is in use.
	ErrBusy = telemetry.Busy
	// ErrNoWork is why there is no next job: none is queued, or none is due.
	ErrNoWork = telemetry.NoWork
	// ErrClosed is why a closed queue starts no job. Nothing is held.
	ErrClosed = telemetry.NewError("closed", "queue of jobs is closed")
)

// ErrExists is why a job was refused that is to be unique. See [ExistsError].
var ErrExists = repo.ErrExists

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
// resource with a limit of one is to those who wait.
func (e *BusyError) Is(target error) bool { return target == ErrBusy || target == repo.ErrLocked }

// Config are the settings of a queue. The zero value works and is the
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
	// Lease is how long a running job lasts if it is not renewed; it is renewed by itself
	// from a third of it on. Default 30 s, at least 1 s, at most 24 h.
	Lease time.Duration
	// Retry is what becomes of jobs that fail.
	Retry Retry
	// Workers is how many jobs Run handles at once in this process. Default 8.
	Workers int
	// Resources are those whose jobs Run handles, each with its weight, from 1 to 1,000, by
	// which they share the starts of this program: of two that have work and room, with 3
	// and 1, the first has three of four. What one does not use the others get. None that
	// has work and room waits for more starts than twice the weights of the others together,
	// and one for each worker. Other programs must handle the other resources. Next goes by
	// none of it. Default: all resources that there are, in turn.
	Resources map[string]int
	// HandlerTimeout is how long a handler may work on one job: then its context
	// ends, and the job is not renewed any more. If the handler returns before
	// the lease is over, its job is done or has failed as it says. If it does not,
	// Run leaves it behind and uses its worker for others, and the job is taken
	// over, the attempt counted. Default 0: no end.
	HandlerTimeout time.Duration
	// Keep is how long it is kept what became of the jobs that this program enqueues, for
	// [Queue.Status]: see [Keep]. Default 0: not at all.
	Keep time.Duration
	// Owner names the holder to others. Default: host name and process id.
	Owner string
	// ClockSkew is how much clocks may differ: what has ended is taken over
	// only when it is past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the sleeps where others change the same resource: not their number
	// (Attempts: ErrConfig). Default 5 ms to 500 ms.
	Wait repo.Wait
	// Poll is how long Run pauses at most between two looks for work while there
	// is none: a job that another process enqueues waits for that. Where nothing is
	// queued and nothing runs a look is one request of half a read unit, every 15th
	// look 16 more. Default 2 s.
	Poll time.Duration

	// NameResources are the resources that metrics name, dynahold.resource, so that an alert
	// says which of them starves. Each is a series more. Default: none.
	NameResources []string

	// Table has the attempt time-out of requests, logger, meter and tracer. Three
	// attempts must fit into a lease; by default they do. Of its Attributes none
	// but TTL matters.
	Table repo.TableConfig
}

// Retry says how often and when failed jobs are tried again. The delay doubles
// from Min to Max.
type Retry struct {
	Attempts int           // starts of one job, before it goes to the dead letters; default 5
	Min      time.Duration // default 1 s
	Max      time.Duration // default 5 min
}

// delay is the time from a failure to the next attempt.
func (r Retry) delay(attempt int) time.Duration {
	d := r.Min
	for range attempt - 1 {
		if d *= 2; d >= r.Max {
			return r.Max
		}
	}
	return d
}

func (c Config) withDefaults() (Config, error) {
	if c.Limit > resources.MaxCount {
		return c, fmt.Errorf("%w: Limit is %d: use at most %d", repo.ErrConfig, c.Limit, resources.MaxCount)
	}
	err := settings.FillAll(
		settings.Default("Limit", &c.Limit, 0),
		settings.Lease(&c.Lease),
		settings.Default("Retry.Attempts", &c.Retry.Attempts, 5),
		settings.Bounds("Retry", &c.Retry.Min, &c.Retry.Max, time.Second, 5*time.Minute),
		settings.Default("Workers", &c.Workers, 8),
		settings.Default("HandlerTimeout", &c.HandlerTimeout, 0),
		settings.Default("Keep", &c.Keep, 0),
		settings.Owner(&c.Owner),
		settings.ClockSkew(&c.ClockSkew),
		settings.Sleeps(&c.Wait, settings.LeastWait, "a context that ends"),
		settings.Default("Poll", &c.Poll, 2*time.Second),
		settings.AttemptTimeout(&c.Table.AttemptTimeout, &c.Lease),
	)
	return c, err
}

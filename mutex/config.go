package mutex

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Client is what named locks need of *dynamodb.Client. It gets no more methods
// without a new major version of this module.
type Client interface {
	repo.Client
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

var _ Client = (*dynamodb.Client)(nil)

// Mode says what becomes of a lock whose holder dies.
type Mode int

const (
	// FailClosed locks stay until somebody intervenes.
	FailClosed Mode = iota
	// FailOpen locks are free when their lease is over.
	FailOpen
)

func (m Mode) String() string {
	switch m {
	case FailClosed:
		return "fail-closed"
	case FailOpen:
		return "fail-open"
	}
	return fmt.Sprintf("Mode(%d)", int(m))
}

// Config are the settings of a locker. The zero value works and is the safest.
type Config struct {
	Mode Mode
	// Lease is how long a fail-open lock lasts if it is not extended. Default
	// 30 s, at least 1 s, at most 24 h. Not for FailClosed.
	Lease time.Duration
	// Heartbeat extends a fail-open lock by itself, this long after the last
	// time; at most a third of the lease, so that one that fails can be
	// repeated. 0: none. Not for FailClosed.
	Heartbeat time.Duration
	// Owner names the holder to others. Default: host name and process id.
	Owner string
	// ClockSkew is how much clocks may differ: a hold is overtaken only when it
	// is past its end by more. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Clockless takes over only after watching the unchanged hold for its full
	// lease on the own clock. Clocks may then differ by any amount.
	Clockless bool
	// Race tries again after random sleeps, in place of waiting in the queue on the row.
	// The queue serves all processes in the order in which they came: no write is wasted
	// on a lock that another has, and the longest wait is hardly longer than the usual
	// one. It costs reads; and of FailClosed a request more for whoever gets the lock from
	// another process. While processes wait in it, the lock goes from one to the next and
	// is never free: who races waits until it is empty. A race costs no reads, and keeps
	// some out for long. Processes that share names should agree on it, on Mode and
	// Clockless, and roughly on Lease.
	Race bool
	// Fair says that the queue is wanted, which is the default: with Race it is an
	// error (ErrConfig).
	Fair bool
	// Wait bounds the waiting for a lock that others hold: the sleep between
	// looks at the queue, or with Race tries, and their number.
	Wait repo.Wait
	// Key is the primary key of the table. Default: partition key "name", a
	// string; no sort key.
	Key repo.KeySchema
	// Payload is the name of the attribute for [Lock.SetPayload]. Default
	// "payload".
	Payload string
	// Table has the names of the other attributes, the attempt time-out of
	// requests, logger, meter and tracer.
	Table repo.TableConfig
}

// maxPayload is the limit of a payload, in bytes: every request on the row
// bills its whole size.
const maxPayload = 4096

// withDefaults fills in what is not set.
func (c Config) withDefaults() Config {
	if c.Key.Partition.Name == "" {
		c.Key.Partition.Name = "name"
	}
	if c.Payload == "" {
		c.Payload = "payload"
	}
	return c
}

// taking checks the settings of the lock itself.
func (c Config) taking() (h lock.Config, err error) {
	h = lock.Config{Kind: telemetry.Mutex, Owner: c.Owner, Skew: c.ClockSkew, Clockless: c.Clockless, Fair: !c.Race, Wait: c.Wait}
	if err = settings.Queue(c.Race, c.Fair)(); err != nil {
		return h, err
	}
	switch c.Mode {
	case FailClosed:
		if c.Lease != 0 || c.Heartbeat != 0 {
			return h, fmt.Errorf("%w: Lease and Heartbeat are for FailOpen: a fail-closed lock does not end by itself", repo.ErrConfig)
		}
	case FailOpen:
		h.Lease = c.Lease
		if err = settings.Lease(&h.Lease)(); err != nil {
			return h, err
		}
		if h.Every, err = c.heartbeat(h.Lease); err != nil {
			return h, err
		}
	default:
		return h, fmt.Errorf("%w: %v: use FailClosed or FailOpen", repo.ErrConfig, c.Mode)
	}
	err = settings.FillAll(settings.ClockSkew(&h.Skew), settings.Owner(&h.Owner), settings.Wait(&h.Wait, settings.LeastWait))
	return h, err
}

func (c Config) heartbeat(lease time.Duration) (time.Duration, error) {
	if c.Heartbeat > lease/3 {
		return 0, fmt.Errorf("%w: Lease (%v) is shorter than three Heartbeats (%v): one that fails could not be repeated", repo.ErrConfig, lease, c.Heartbeat)
	}
	return c.Heartbeat, settings.Default("Heartbeat", &c.Heartbeat, 0)()
}

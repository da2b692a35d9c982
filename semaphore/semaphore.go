package semaphore

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Semaphore gives out permits for resources. It is safe for concurrent use.
type Semaphore struct {
	table *resources.Table
	cfg   Config
	lease lease.Config
	open  *closing.Client[*Permit]

	queuesMu sync.Mutex
	queues   map[string]*localQueue // guarded by queuesMu: of resources that callers use, or wait for permits of
}

// New checks the settings. It sends and starts nothing.
func New(client repo.Client, tableName string, cfg Config) (*Semaphore, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	table, err := resources.New(client, tableName, resources.Config{Limit: cfg.Limit, Lease: cfg.Lease, ClockSkew: cfg.ClockSkew, Wait: cfg.Wait, Table: cfg.Table})
	if err != nil {
		return nil, err
	}
	cfg.Table = repo.TableConfig{} // the table has it, and its secret is nobody else's
	return &Semaphore{table: table, cfg: cfg, lease: table.Leases(), open: closing.New[*Permit](ErrClosed)}, nil
}

// Format prints the semaphore's table.
func (s *Semaphore) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "resources of %v", s.table.Keys)
}

// EnsureTable creates the table if it does not exist (partition key "pk", sort key "sk",
// strings; TTL on expiresAt, for jobs), waits until it is active, and verifies the key
// schema of an existing one (ErrSchema).
func (s *Semaphore) EnsureTable(ctx context.Context) error { return s.table.Keys.EnsureTable(ctx) }

// Resource is what the table knows of a resource.
type Resource struct {
	Name    string
	Running int // permits that are held and jobs that run, also those whose holder is dead
	Queued  int // jobs that wait, of package jobs
	Limit   int
	Paused  time.Time // since when it is paused, by the clock of who did it; zero: it is not
}

func public(r resources.Row) Resource {
	return Resource{Name: r.Name, Running: r.Running, Queued: r.Queued, Limit: r.Limit, Paused: r.Paused}
}

func busy(r resources.Row) error {
	return &BusyError{Resource: r.Name, Running: r.Running, Limit: r.Limit, Paused: r.Paused}
}

// Resource reads one resource: zero counters and its limit if nobody has used
// it. One request.
func (s *Semaphore) Resource(ctx context.Context, resource string) (Resource, error) {
	r, err := s.read(ctx, resource)
	return public(r), err
}

func (s *Semaphore) read(ctx context.Context, resource string) (resources.Row, error) {
	if err := s.table.CheckName(resource); err != nil {
		return resources.Row{}, err
	}
	return s.table.Read(ctx, resource)
}

// Resources iterates over all resources that were ever used, in no order, with
// their counters. One whose row cannot be read comes with its name and
// ErrSchema, and the iteration goes on; every other error ends it. At least 16
// requests, one for each shard; one read unit per 4 KB.
func (s *Semaphore) Resources(ctx context.Context) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for r, err := range s.table.All(ctx) {
			if !yield(public(r), err) {
				return
			}
		}
	}
}

// SetLimit sets how many permits and running jobs a resource may have at once,
// from now on and for all programs; it registers a new resource. What runs goes
// on, also where it is more. One request. ErrOutcomeUnknown where others have set another
// since, and an answer was lost or their clock is ahead.
func (s *Semaphore) SetLimit(ctx context.Context, resource string, limit int) error {
	return s.table.SetLimit(ctx, resource, limit)
}

// Pause stops a resource, for operators: no permit of it is given out, and no job is
// started, until [Semaphore.Resume]. What is held goes on and ends as ever. Callers of
// Acquire wait; TryAcquire fails with ErrBusy, and [BusyError] says since when it is
// paused. A resource that is paused stays so since then; one that nobody has used is
// registered. One request; where an answer was lost, or others were quicker, the row
// tells: ErrOutcomeUnknown if they have set it otherwise since.
func (s *Semaphore) Pause(ctx context.Context, resource string) error {
	return s.table.Pause(ctx, resource)
}

// Resume lets a paused resource go on; one that is not paused stays as it is. One
// request, and errors, as of Pause.
func (s *Semaphore) Resume(ctx context.Context, resource string) error {
	return s.table.Resume(ctx, resource)
}

// Forget removes a resource that nobody uses any more, with the limit that
// SetLimit gave it: names that are used once, such as one per order, would pile
// up. ErrBusy if it has permits, or jobs, queued, running or dead. Using it again
// registers it again; its tokens begin anew with the clock of who does, which must not be
// behind. After a permit or a job of the resource was broken, wait until the lease of its
// holder is over: the row is what would tell it. A pause ends. One request.
func (s *Semaphore) Forget(ctx context.Context, resource string) error {
	return s.table.Forget(ctx, resource, ErrBusy)
}

package jobs

import (
	"context"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/jsontype"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// Queue keeps queued work for resources, in one table. J is what travels with a job: any
// value that encoding/json can write and read. It is safe for concurrent use.
//
// Give each table one J, or each J resources of its own, by Config.Resources of all programs:
// a job does not say of which J it is, and is taken by whichever queue comes first. One of
// another J is then read as far as its fields have the same names.
type Queue[J any] struct {
	calls
}

// calls are those that know nothing of J. They are compiled once for all types of jobs, and
// a queue of each type has these methods alone.
type calls struct{ s *store }

// store is the table of a queue, and what the callers of this process share of it.
type store struct {
	client Client
	table  *resources.Table
	decode func(string) (any, error) // the value of a job, into a new one of its type
	cfg    Config
	lease  lease.Config // of jobs
	open   *closing.Client[*job]
	locals *recent.Memory[*localResource]
	served [resources.Shards]bool // which have resources that Config.Resources names

	origins *recent.Memory[string] // where jobs come from that were enqueued lately, and are traced

	mu        sync.Mutex
	last      int64                       // guarded by mu: the place in line that was made last, microseconds
	marked    [resources.Shards]time.Time // guarded by mu: when this process last marked each shard in the wake-up row
	periodics []*periodic                 // guarded by mu
	ticking   lease.Exclusive             // held by the dispatcher that looks at them
	due       [resources.Shards]dueShard  // guarded by mu: what it knows of jobs that wait for their time
}

// New checks the settings. It sends and starts nothing. One J for a table, or see [Queue].
func New[J any](client Client, tableName string, cfg Config) (*Queue[J], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := jsontype.Check(reflect.TypeFor[J]()); err != nil {
		return nil, fmt.Errorf("%w: jobs: %w", repo.ErrSchema, err)
	}
	table, err := resources.New(client, tableName, resources.Config{Limit: cfg.Limit, Lease: cfg.Lease, ClockSkew: cfg.ClockSkew, Wait: cfg.Wait, Table: cfg.Table})
	if err != nil {
		return nil, err
	}
	cfg.Table = repo.TableConfig{} // the table has it, and its secret is nobody else's
	table.Core.Transacts = true    // every change of a job is a transaction
	decodes := func(value string) (any, error) { return decode[J](value) }
	s := &store{client: client, table: table, decode: decodes, cfg: cfg, lease: table.Leases(),
		open: closing.New[*job](ErrClosed), locals: recent.New[*localResource](maxLocals), origins: recent.New[string](maxOrigins)}
	if err := s.checkResources(); err != nil {
		return nil, err
	}
	return &Queue[J]{calls{s}}, nil
}

// Format prints the queue's table.
func (q calls) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "jobs of %v", q.s.table.Keys) }

// EnsureTable creates the table if it does not exist (partition key "pk", sort key "sk",
// strings; TTL on expiresAt), waits until it is active, and verifies the key schema of an
// existing one (ErrSchema). A global table with strong consistency is refused, for it has
// no transactions.
func (q calls) EnsureTable(ctx context.Context) error { return q.s.table.Keys.EnsureTable(ctx) }

// Resource is what the table knows of a resource.
type Resource struct {
	Name    string
	Queued  int // jobs that wait, those that wait for their time among them
	Later   int // of them, those that wait for their time, also that of their next attempt
	Running int // jobs that run and permits that are held, also those whose holder is dead
	Dead    int // jobs in the dead letters
	Limit   int
	Paused  time.Time // since when it is paused, by the clock of who did it; zero: it is not
}

func public(r resources.Row) Resource {
	return Resource{Name: r.Name, Queued: r.Queued + r.Later, Later: r.Later, Running: r.Running, Dead: r.Dead, Limit: r.Limit, Paused: r.Paused}
}

func busy(r resources.Row) error {
	return &BusyError{Resource: r.Name, Running: r.Running, Limit: r.Limit, Paused: r.Paused}
}

// Resource reads one resource: zero counters and its limit if nobody has used
// it. One request.
func (q calls) Resource(ctx context.Context, resource string) (Resource, error) {
	if err := q.s.table.CheckName(resource); err != nil {
		return Resource{}, err
	}
	r, err := q.s.table.Read(ctx, resource)
	return public(r), err
}

// Resources iterates over all resources that were ever used, in no order, with
// their counters. One whose row cannot be read comes with its name and
// ErrSchema, and the iteration goes on; every other error ends it. At least 16
// requests, one for each shard; one read unit per 4 KB.
func (q calls) Resources(ctx context.Context) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for r, err := range q.s.table.All(ctx) {
			if !yield(public(r), err) {
				return
			}
		}
	}
}

// SetLimit sets how many running jobs and permits a resource may have at once,
// from now on and for all programs; it registers a new resource. What runs goes
// on, also where it is more. One request. ErrOutcomeUnknown where others have set another
// since, and an answer was lost or their clock is ahead.
func (q calls) SetLimit(ctx context.Context, resource string, limit int) error {
	return q.s.table.SetLimit(ctx, resource, limit)
}

// Pause stops a resource, for operators: no job is started or taken over, and no permit of
// it is given out, until [Queue.Resume]. What runs goes on and ends as ever, and jobs can
// be enqueued. Next fails with ErrBusy, and [BusyError] says since when it is paused. A
// resource that is paused stays so since then; one that nobody has used is registered. One
// request; where an answer was lost, or others were quicker, the row tells:
// ErrOutcomeUnknown if they have set it otherwise since.
func (q calls) Pause(ctx context.Context, resource string) error {
	return q.s.table.Pause(ctx, resource)
}

// Resume lets a paused resource go on; one that is not paused stays as it is.
// Dispatchers notice it with their next look for work, after Config.Poll at the latest.
// One request, and errors, as of Pause.
func (q calls) Resume(ctx context.Context, resource string) error {
	return q.s.table.Resume(ctx, resource)
}

// Forget removes a resource that nobody uses any more, with the limit that
// SetLimit gave it: names that are used once, such as one per order, would pile
// up, and every look of Run reads all of them. ErrBusy if it has jobs, queued,
// running or dead, or permits. Using it again registers it again; its tokens
// begin anew with the clock of who does, which must not be behind. After a permit or a
// job of the resource was broken, wait until the lease of its holder is over: the row is
// what would tell it. A pause ends. One request.
func (q calls) Forget(ctx context.Context, resource string) error {
	return q.s.table.Forget(ctx, resource, ErrBusy)
}

// Close ends every [Queue.Run] with ErrClosed, whose handlers are told by their contexts,
// and waits for them as long as ctx allows. Then it gives back the jobs that run: they go
// to their places in line, their attempts not counted. Renewals end with that. Its error
// joins one *repo.CloseError for each job that could not be given back, which others take
// over after its lease; calling Close again tries them again. Afterwards the queue starts
// no jobs; what is only read or written goes on. One request for jobs of one resource
// together.
func (q calls) Close(ctx context.Context) error {
	return q.s.open.Close(ctx, func(j *job) error { return j.endOnClose(ctx) })
}

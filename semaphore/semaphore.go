package semaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/repo"
)

// Semaphore gives out permits for resources and keeps their queued work, in
// one table. J is what travels with a job: any value that encoding/json can
// write and read. It is safe for concurrent use.
type Semaphore[J any] struct {
	*store // knows nothing of J, and so is compiled once for all types of jobs
}

// New checks the settings. It sends and starts nothing.
func New[J any](client Client, tableName string, cfg Config) (*Semaphore[J], error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := checkJob[J](); err != nil {
		return nil, err
	}
	key := repo.KeySchema{Partition: repo.KeyAttribute{Name: pkName}, Sort: repo.KeyAttribute{Name: skName}}
	table, err := repo.NewKeyTable(client, tableName, key, cfg.Table)
	if err != nil {
		return nil, err
	}
	own := []string{pkName, skName, aQueued, aRunning, aDead, aLimit, aFixed, aToken, aChanges, aSwept, aID, aJob, aState, aAttempts, aUntil, aOwner, aNotBefore, aError, aMarked, aPaused, aDied}
	core := link.Core(table)
	if name := core.Attr.Clash(own, []string{permitPrefix, ownerPrefix, brokenPrefix}); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which resources or jobs keep for themselves: on the end of a lease, for example, TTL would remove jobs", repo.ErrConfig, name)
	}
	core.Transacts = true // every change of a job is a transaction
	st := &store{client: client, table: table, decode: func(value string) (any, error) { return decode[J](value) }, core: core, cfg: cfg, clock: core.Clock,
		open: lease.NewOpen[held](ErrClosed), stations: recent.New[*station](maxStations)}
	st.lease = lease.Config{Length: cfg.Lease, Every: cfg.Lease / 3, Pause: ddb.Backoff{Min: cfg.Wait.Min, Max: cfg.Wait.Max},
		Clock: func() time.Time { return st.clock() }, Jumps: core.Jumps, Observe: core.Observe}
	return &Semaphore[J]{st}, nil
}

// checkJob refuses types that JSON has nothing for, such as channels.
func checkJob[J any]() (err error) {
	defer func() { _ = recover() }() // a type that codes itself may not like its zero value
	var none J
	var unsupported *json.UnsupportedTypeError
	if _, err := json.Marshal(none); errors.As(err, &unsupported) {
		return fmt.Errorf("%w: jobs of type %T cannot be written as JSON: %w", repo.ErrSchema, none, err)
	}
	return nil
}

// EnsureTable creates the table if it does not exist, waits until it is
// active, and verifies the key schema of an existing one (ErrSchema). A global
// table with strong consistency is refused, for it has no transactions.
func (s *store) EnsureTable(ctx context.Context) error { return s.table.EnsureTable(ctx) }

// SetLimit sets how many permits and running jobs a resource may have at once,
// from now on and for all programs; it registers a new resource. What runs goes
// on, also where it is more. One request.
func (s *store) SetLimit(ctx context.Context, resource string, limit int) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	if limit < 1 || limit > maxCount {
		return fmt.Errorf("%w: the limit of resource %q cannot be %d: use 1 to %d", repo.ErrConfig, resource, limit, maxCount)
	}
	w := s.core.NewWrite()
	w.Set(aLimit, ddb.Integer(int64(limit)))
	w.Set(aFixed, ddb.True())
	return s.plain(resource, s.write(ctx, resource, w, ddb.Options{}))
}

// Forget removes a resource that nobody uses any more, with the limit that
// SetLimit gave it: names that are used once, such as one per order, would pile
// up, and every look of Run reads all of them. ErrBusy if it has jobs, queued,
// running or dead, or permits. Using it again registers it again; its tokens
// begin anew with the clock of who does, which must not be behind. After a permit or a
// job of the resource was broken, wait until the lease of its holder is over: the row is
// what would tell it. A pause ends. One request.
func (s *store) Forget(ctx context.Context, resource string) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	w := s.core.NewWrite()
	for _, counter := range []string{aQueued, aRunning, aDead} {
		none := w.Value(ddb.Integer(0))
		w.If("(attribute_not_exists(" + w.Name(counter) + ") OR " + w.Name(counter) + " = " + none + ")")
	}
	res := s.core.Delete(ctx, w.Delete(resourceKey(resource)), ddb.Options{})
	if res.Outcome != ddb.Condition {
		return s.plain(resource, res)
	}
	r, err := parseResource(resource, res.Image, s.cfg)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: resource %q has %d jobs queued, %d dead, and %d running or permits", ErrBusy, resource, r.Queued, r.Dead, r.Running)
}

// Resource reads one resource: zero counters and its limit if nobody has used
// it. One request.
func (s *store) Resource(ctx context.Context, resource string) (Resource, error) {
	if err := s.checkName(resource); err != nil {
		return Resource{}, err
	}
	return s.resource(ctx, resource)
}

// Resources iterates over all resources that were ever used, in no order, with
// their counters. One whose row cannot be read comes with its name and
// ErrSchema, and the iteration goes on; every other error ends it. At least 16
// requests, one for each shard; one read unit per 4 KB.
func (s *store) Resources(ctx context.Context) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for i := range shards {
			for r, err := range s.inShard(ctx, i, page{}) {
				if !yield(r, err) || err != nil && r.Name == "" {
					return
				}
			}
		}
	}
}

// inShard iterates over the resources of a shard. An error of one resource comes with its
// name.
func (s *store) inShard(ctx context.Context, shard int, p page) iter.Seq2[Resource, error] {
	return parsed(s.rows(ctx, shardKey(shard), p), func(row ddb.Item) (Resource, error) {
		return parseResource(text(row, skName), row, s.cfg)
	})
}

package semaphore

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/redact"
	"github.com/dynahold/dynahold/repo"
)

// Resource is what the table knows of a resource.
type Resource struct {
	Name    string
	Queued  int // jobs that wait
	Running int // jobs that run and permits that are held, also those whose holder is dead
	Dead    int // jobs in the dead letters
	Limit   int
	Paused  time.Time // since when it is paused, by the clock of who did it; zero: it is not

	fixed   bool
	stored  int   // the limit in the row
	token   int64 // 0: none was given out yet
	changes int64
	asked   int64 // when an operator's last call was made; 0: there was none
	permits map[string]ending
	swept   []string             // whose permits were removed, lately, as those of dead holders
	broken  map[string]time.Time // what was ended by force, by the name of its attribute, and the end that it had
}

// Format prints what can be read of it.
func (r Resource) Format(f fmt.State, _ rune) { redact.Exported(f, "semaphore.Resource", r) }

// ending is when a permit ends, and how its row says so.
type ending struct {
	until time.Time
	raw   types.AttributeValue
	owner types.AttributeValue // who took it when; nil if it does not say
}

// Numbers of a resource beyond these are nobody's work: they must let nobody
// in, nor overflow.
const (
	maxCount = 1_000_000_000
	maxToken = 1 << 62 // and what a token grows by while its resource is paused
)

// parseResource reads a resource's row; an empty one is a resource that nobody
// has used. Its Limit is the one that this program goes by.
func parseResource(name string, row ddb.Item, cfg Config) (r Resource, err error) {
	r = Resource{Name: name, Limit: 1}
	defer func() {
		if err != nil {
			err = fmt.Errorf("%w: resource %q: %w", repo.ErrSchema, name, err)
		}
	}()
	for _, f := range []struct {
		name string
		to   *int
	}{{aQueued, &r.Queued}, {aRunning, &r.Running}, {aDead, &r.Dead}, {aLimit, &r.Limit}} {
		n, err := integer(row, f.name, maxCount)
		if err != nil {
			return r, err
		}
		if row[f.name] != nil {
			*f.to = int(n)
		}
	}
	if r.token, r.Paused, err = tokenOf(row); err == nil {
		r.changes, err = integer(row, aChanges, maxToken)
	}
	if err == nil {
		r.asked, err = integer(row, aAsked, maxToken)
	}
	if err != nil {
		return r, err
	}
	for attr, v := range row {
		if strings.HasPrefix(attr, brokenPrefix) {
			r.noteBroken(attr, v)
		}
		if !strings.HasPrefix(attr, permitPrefix) {
			continue
		}
		until, err := ddb.Time(v)
		if err != nil {
			return r, fmt.Errorf("attribute %q: %w", attr, err)
		}
		if r.permits == nil {
			r.permits = map[string]ending{}
		}
		r.permits[attr] = ending{until, v, row[ownerAttr(attr)]}
	}
	if r.Running < len(r.permits) {
		return r, fmt.Errorf("%d permits are held and %q is %d", len(r.permits), aRunning, r.Running)
	}
	r.swept = sweptIn(row)
	_, r.fixed = row[aFixed]
	if r.stored = r.Limit; cfg.Limit != 0 && !r.fixed {
		r.Limit = cfg.Limit
	}
	return r, nil
}

func (r Resource) busy() error {
	return &BusyError{Resource: r.Name, Running: r.Running, Limit: r.Limit, Paused: r.Paused}
}

// count adds n to a counter of a resource, which may not be there yet.
func count(w *ddb.Write, attr string, n int64) {
	w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(n)))
}

// register adds what a resource must have to a write that may be its first.
func register(w *ddb.Write, cfg Config) {
	w.SetTo(aLimit, "if_not_exists("+w.Name(aLimit)+", "+w.Value(ddb.Integer(int64(max(cfg.Limit, 1))))+")")
}

// SetLimit sets how many permits and running jobs a resource may have at once,
// from now on and for all programs; it registers a new resource. What runs goes
// on, also where it is more. One request. ErrOutcomeUnknown where others have set another
// since, and an answer was lost or their clock is ahead.
func (s *store) SetLimit(ctx context.Context, resource string, limit int) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	if limit < 1 || limit > maxCount {
		return fmt.Errorf("%w: the limit of resource %q cannot be %d: use 1 to %d", repo.ErrConfig, resource, limit, maxCount)
	}
	return s.operate(ctx, resource, updates, func(w *ddb.Write) {
		w.Set(aLimit, ddb.Integer(int64(limit)))
		w.Set(aFixed, ddb.True())
	}, func(r Resource) bool { return r.fixed && r.stored == limit }, unknownOf)
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
	demand := func(w *ddb.Write) {
		for _, counter := range []string{aQueued, aRunning, aDead} {
			none := w.Value(ddb.Integer(0))
			w.If("(attribute_not_exists(" + w.Name(counter) + ") OR " + w.Name(counter) + " = " + none + ")")
		}
	}
	return s.operate(ctx, resource, removes, demand, func(Resource) bool { return false }, func(r Resource, _ ddb.Result) error {
		return fmt.Errorf("%w: resource %q has %d jobs queued, %d dead, and %d running or permits", ErrBusy, resource, r.Queued, r.Dead, r.Running)
	})
}

// Resource reads one resource: zero counters and its limit if nobody has used
// it. One request.
func (s *store) Resource(ctx context.Context, resource string) (Resource, error) {
	if err := s.checkName(resource); err != nil {
		return Resource{}, err
	}
	return s.readResource(ctx, resource)
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

// readResource reads the row of a resource. One request. With an error the result has its name.
func (s *store) readResource(ctx context.Context, name string) (Resource, error) {
	res := s.core.Read(ctx, resourceKey(name), ddb.Options{Holding: true})
	if res.Err != nil {
		return Resource{Name: name}, res.Err
	}
	return parseResource(name, res.Item, s.cfg)
}

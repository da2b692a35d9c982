package semaphore

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// The table: partition key "pk", sort key "sk".
const (
	pkName, skName = "pk", "sk"

	resourcePrefix = "RESOURCE#" // + shard; sort key: the resource
	jobsPrefix     = "JOBS#"     // + resource; sort key: the job's place in line
	deadPrefix     = "DEAD#"     // + resource; sort key: the job's id
)

// Attributes of a resource.
const (
	aQueued  = "queued"
	aRunning = "running"
	aDead    = "dead"
	aLimit   = "limit"
	aFixed   = "limitSet" // BOOL: SetLimit has set it
	aToken   = "token"    // last fencing token given out on the resource
	aChanges = "changes"  // counts every change of the counters, for the audit

	permitPrefix = "p_" // + id: until when a permit is held, Unix seconds
)

// Attributes of a job.
const (
	aID        = "id"
	aJob       = "job" // the user's value, JSON
	aState     = "state"
	aAttempts  = "attempts"
	aUntil     = "until"
	aOwner     = "owner"
	aNotBefore = "notBefore"
	aError     = "error"

	queued  = "queued"
	running = "running"
)

// shards spread resources over partitions: every change of a job touches its
// resource. The number is fixed, for programs that disagreed about it would
// count one resource twice.
const shards = 16

func shard(name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return fmt.Sprintf("%s%x", resourcePrefix, h.Sum32()%shards)
}

func rowKey(pk, sk string) ddb.Item { return ddb.Item{pkName: ddb.Text(pk), skName: ddb.Text(sk)} }

func resourceKey(name string) ddb.Item { return rowKey(shard(name), name) }

// Resource is what the table knows of a resource.
type Resource struct {
	Name    string
	Queued  int // jobs that wait
	Running int // jobs that run and permits that are held, also those whose holder is dead
	Dead    int // jobs in the dead letters
	Limit   int

	fixed   bool
	token   int64 // 0: none was given out yet
	changes int64
	permits map[string]ending
}

// ending is when a permit ends, and how its row says so.
type ending struct {
	until time.Time
	raw   types.AttributeValue
}

// parseResource reads a resource's row; an empty one is a resource that nobody
// has used.
func parseResource(name string, row ddb.Item) (Resource, error) {
	r := Resource{Name: name, Limit: 1}
	for _, f := range []struct {
		name string
		to   *int
	}{{aQueued, &r.Queued}, {aRunning, &r.Running}, {aDead, &r.Dead}, {aLimit, &r.Limit}} {
		n, err := integer(row, f.name)
		if err != nil {
			return r, fmt.Errorf("%w: resource %q: %w", repo.ErrSchema, name, err)
		}
		if row[f.name] != nil {
			*f.to = int(n)
		}
	}
	var err error
	if r.token, err = integer(row, aToken); err == nil {
		r.changes, err = integer(row, aChanges)
	}
	if err != nil {
		return r, fmt.Errorf("%w: resource %q: %w", repo.ErrSchema, name, err)
	}
	_, r.fixed = row[aFixed]
	for attr, v := range row {
		if !strings.HasPrefix(attr, permitPrefix) {
			continue
		}
		until, err := ddb.Time(v)
		if err != nil {
			return r, fmt.Errorf("%w: resource %q: attribute %q: %w", repo.ErrSchema, name, attr, err)
		}
		if r.permits == nil {
			r.permits = map[string]ending{}
		}
		r.permits[attr] = ending{until, v}
	}
	return r, nil
}

// check refuses a limit that this program does not expect.
func (r Resource) check(cfg Config) error {
	if cfg.Limit != 0 && !r.fixed && r.Limit != cfg.Limit {
		return &LimitError{Resource: r.Name, Stored: r.Limit, Configured: cfg.Limit}
	}
	return nil
}

func (r Resource) busy() error {
	return &BusyError{Resource: r.Name, Running: r.Running, Limit: r.Limit}
}

func integer(row ddb.Item, name string) (int64, error) {
	v, ok := row[name]
	if !ok {
		return 0, nil
	}
	n, err := ddb.Int(v)
	if err != nil {
		return 0, fmt.Errorf("attribute %q: %w", name, err)
	}
	return n, nil
}

func text(row ddb.Item, name string) string {
	if s, ok := row[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// count adds n to a counter of a resource, which may not be there yet.
func count(w *ddb.Write, attr string, n int64) {
	w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(n)))
}

// register adds what a resource must have to a write that may be its first.
func register(w *ddb.Write, cfg Config) {
	limit := ddb.Integer(int64(max(cfg.Limit, 1)))
	w.SetTo(aLimit, "if_not_exists("+w.Name(aLimit)+", "+w.Value(limit)+")")
	if cfg.Limit != 0 {
		w.If("(attribute_not_exists(" + w.Name(aLimit) + ") OR attribute_exists(" + w.Name(aFixed) + ") OR " + w.Name(aLimit) + " = " + w.Value(limit) + ")")
	}
}

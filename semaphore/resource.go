package semaphore

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// The table: partition key "pk", sort key "sk".
const (
	pkName, skName = "pk", "sk"

	resourcePrefix = "RESOURCE#" // + shard; sort key: the resource
	jobsPrefix     = "JOBS#"     // + resource; sort key: the job's place in line
	deadPrefix     = "DEAD#"     // + resource; sort key: the job's id
	idsPrefix      = "IDS#"      // + resource; sort key: an id that a caller gave; has the table's TTL once its job has ended
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

	aSwept  = "swept"  // SS: the permits that were lately removed because their lease was over
	aPaused = "paused" // N, Unix seconds: since when it is paused; its token is then beyond maxToken

	permitPrefix = "p_" // + id: until when a permit is held, Unix seconds
	ownerPrefix  = "o_" // + id: "<Unix seconds> <Config.Owner>", who took the permit when; with Config.NamePermits only
	brokenPrefix = "x_" // + id of a permit, or token of a job: it was ended by force; the end that it had, Unix seconds
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
	aMarked    = "marked" // BOOL: its id has a row of its own
	aDied      = "died"   // N, Unix seconds: when it became a dead letter

	queued  = "queued"
	running = "running"
)

// shards spread resources over partitions: every change of a job touches its
// resource. The number is fixed, for programs that disagreed about it would
// count one resource twice.
const shards = 16

func shard(name string) string { return shardKey(shardOf(name)) }

func shardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() % shards)
}

func shardKey(shard int) string { return fmt.Sprintf("%s%x", resourcePrefix, shard) }

func rowKey(pk, sk string) ddb.Item { return ddb.Item{pkName: ddb.Text(pk), skName: ddb.Text(sk)} }

func resourceKey(name string) ddb.Item { return rowKey(shard(name), name) }

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
	permits map[string]ending
	swept   []string             // whose permits were removed, lately, as those of dead holders
	broken  map[string]time.Time // what was ended by force, by the name of its attribute, and the end that it had
}

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
	if err != nil {
		return r, err
	}
	for attr, v := range row {
		if !strings.HasPrefix(attr, permitPrefix) {
			r.noteBroken(attr, v)
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

// integer reads a number of a row: from 0, which it is if it is absent, to most.
func integer(row ddb.Item, name string, most int64) (int64, error) {
	v, ok := row[name]
	if !ok {
		return 0, nil
	}
	n, err := ddb.Int(v)
	if err == nil && (n < 0 || n > most) {
		err = fmt.Errorf("%d is not between 0 and %d", n, most)
	}
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
func count(w *protocol.Write, attr string, n int64) {
	w.SetTo(attr, "if_not_exists("+w.Name(attr)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(n)))
}

// register adds what a resource must have to a write that may be its first.
func register(w *protocol.Write, cfg Config) {
	w.SetTo(aLimit, "if_not_exists("+w.Name(aLimit)+", "+w.Value(ddb.Integer(int64(max(cfg.Limit, 1))))+")")
}

package semaphore

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/closing"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// store is a semaphore's table, and what the callers of this process share of
// it. It knows nothing of the type of jobs.
type store struct {
	client   Client
	table    *repo.KeyTable
	decode   func(string) (any, error) // the value of a job, into a new one of its type
	core     *stored.Table
	cfg      Config
	clock    func() time.Time
	lease    lease.Config // of permits and jobs
	open     *closing.Client[held]
	stations *recent.Memory[*station]

	linesMu sync.Mutex
	lines   map[string]*permitLine // guarded by linesMu: of resources that callers use, or wait for permits of

	mu     sync.Mutex
	last   int64             // guarded by mu: the place in line that was made last, microseconds
	marked [shards]time.Time // guarded by mu: when this process last marked each shard in the wake-up row
}

// station is what the callers of one resource in this process share: the writes
// under way, and what was found out about its line. No safety rests on it.
type station struct {
	turn    lease.Exclusive // held by the Next that reads the line
	coming  lease.Exclusive // held by the Enqueue that is under way
	adopted atomic.Bool     // the row was told this program's limit

	mu      sync.Mutex           // guards all that follows
	waiting []*change            // for the next transaction
	flights int                  // transactions under way
	raced   time.Time            // when another process was last seen to start jobs of the same line
	deep    time.Time            // the last look behind the head of the line
	behind  string               // the place where that look ended; "" for the head
	noted   map[string]time.Time // rows that cannot be read, by place, since they were first seen
	oldest  time.Time            // since when the first job waits that the last look found; zero: none was

	// The last look has found nothing to start, and until a row can be started by the
	// clock alone, because it is due or its holder is dead, no other one will: unless the
	// resource changes, or, where the limit was used up, something has ended.
	restUntil time.Time
	restAt    int64 // its changes
	restFull  bool
}

// maxStations is of how many resources, those that were used last, a process has one.
const maxStations = 10_000

// station returns that of a resource.
func (s *store) station(resource string) (st *station) {
	s.stations.Change(resource, func(known *station) (*station, bool) {
		if st = known; st == nil {
			st = &station{}
		}
		return st, true
	})
	return st
}

// page says how a partition is read.
type page struct {
	after       string // the sort key behind which to begin
	first, next int    // rows in the first request, and in the others; 0: as many as the service gives
	eventual    bool   // what is read may be out of date by a moment, at half the price
}

// rows iterates over a partition in order, with consistent reads unless the page says
// otherwise.
func (s *store) rows(ctx context.Context, pk string, p page) iter.Seq2[ddb.Item, error] {
	cond, consistent := "#pk = :pk", !p.eventual
	in := &dynamodb.QueryInput{TableName: &s.core.Name, ConsistentRead: &consistent, KeyConditionExpression: &cond,
		ExpressionAttributeNames: map[string]string{"#pk": pkName}, ExpressionAttributeValues: ddb.Item{":pk": ddb.Text(pk)}}
	return s.core.Pages(ctx, "Query", ddb.Options{Holding: consistent}, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		limit := p.next
		if in.ExclusiveStartKey = start; len(start) == 0 {
			limit = p.first
			if p.after != "" {
				in.ExclusiveStartKey = rowKey(pk, p.after)
			}
		}
		if in.Limit = nil; limit > 0 {
			in.Limit = aws.Int32(int32(limit))
		}
		return s.client.Query(ctx, in, o)
	})
}

// parsed iterates over what rows say. One that cannot be read comes with its error.
func parsed[T any](rows iter.Seq2[ddb.Item, error], parse func(ddb.Item) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			var says T
			if err == nil {
				says, err = parse(row)
			}
			if !yield(says, err) {
				return
			}
		}
	}
}

// update is a write of a row whose expression is far below DynamoDB's limit for one: that
// is all that Update refuses.
func update(w *ddb.Write, key ddb.Item) *dynamodb.UpdateItemInput {
	in, _ := w.Update(key)
	return in
}

// write changes the row of a resource.
func (s *store) write(ctx context.Context, resource string, w *ddb.Write, opt ddb.Options) ddb.Result {
	return s.core.Update(ctx, update(w, resourceKey(resource)), opt)
}

// plain turns the outcome of a write without a condition into an error.
func (s *store) plain(resource string, res ddb.Result) error {
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Unknown:
		return unknown(resource, res.Err)
	case ddb.Condition:
		return unknown(resource, nil)
	}
	return res.Err
}

// unknownOf is for calls that nothing but what others do can refuse.
func unknownOf(r Resource, _ ddb.Result) error { return unknown(r.Name, nil) }

func unknown(resource string, err error) error {
	if err == nil {
		return fmt.Errorf("resource %q: %w: an answer was lost, and others changed it since", resource, repo.ErrOutcomeUnknown)
	}
	return fmt.Errorf("resource %q: %w: %w", resource, repo.ErrOutcomeUnknown, err)
}

// checkName refuses names that cannot be keys.
func (s *store) checkName(resource string) error {
	if resource == "" {
		return fmt.Errorf("%w: the resource has no name", repo.ErrKey)
	}
	_, err := s.table.EncodeKey(repo.Key{Partition: shard(resource), Sort: resource})
	return err
}

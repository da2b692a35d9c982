package semaphore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Semaphore gives out permits for resources and keeps their queued work, in
// one table. J is what travels with a job: any value that encoding/json can
// write and read. It is safe for concurrent use.
type Semaphore[J any] struct {
	client Client
	table  *repo.KeyTable
	core   *ddb.Core
	cfg    Config
	clock  func() time.Time
	ids    ids
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
	own := []string{aQueued, aRunning, aDead, aLimit, aFixed, aToken, aChanges, aID, aJob, aState, aAttempts, aUntil, aOwner, aNotBefore, aError}
	if name := table.Core().Attr.Clash(own, []string{permitPrefix}); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which resources or jobs keep for themselves", repo.ErrConfig, name)
	}
	table.Core().Transacts = true // every change of a job is a transaction
	return &Semaphore[J]{client: client, table: table, core: table.Core(), cfg: cfg, clock: time.Now}, nil
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
// active, and verifies the key schema of an existing one (ErrSchema).
func (s *Semaphore[J]) EnsureTable(ctx context.Context) error { return s.table.EnsureTable(ctx) }

// SetLimit sets how many permits and running jobs a resource may have at once,
// from now on and for all programs; it registers a new resource. What runs goes
// on, also where it is more. One request.
func (s *Semaphore[J]) SetLimit(ctx context.Context, resource string, limit int) error {
	if err := s.checkName(resource); err != nil {
		return err
	}
	if limit < 1 {
		return fmt.Errorf("%w: the limit of resource %q cannot be %d: use at least 1", repo.ErrConfig, resource, limit)
	}
	w := s.core.NewWrite()
	w.Set(aLimit, ddb.Integer(int64(limit)))
	w.Set(aFixed, ddb.True())
	in, err := w.Update(resourceKey(resource))
	if err != nil {
		return repo.Classify(err)
	}
	return s.plain(resource, s.core.Update(ctx, in, ddb.Options{}))
}

// Forget removes a resource that nobody uses any more, with the limit that
// SetLimit gave it: names that are used once, such as one per order, would pile
// up, and every look of Run reads all of them. ErrBusy if it has jobs, queued,
// running or dead, or permits. Using it again registers it again; its tokens
// begin anew with the clock of who does, which must not be behind. One request.
func (s *Semaphore[J]) Forget(ctx context.Context, resource string) error {
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
	r, err := parseResource(resource, res.Image)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: resource %q has %d jobs queued, %d dead, and %d running or permits", ErrBusy, resource, r.Queued, r.Dead, r.Running)
}

// Resource reads one resource: zero counters and its limit if nobody has used
// it. One request.
func (s *Semaphore[J]) Resource(ctx context.Context, resource string) (Resource, error) {
	if err := s.checkName(resource); err != nil {
		return Resource{}, err
	}
	row, err := s.core.Get(ctx, resourceKey(resource))
	if err != nil {
		return Resource{}, repo.Classify(err)
	}
	r, err := parseResource(resource, row)
	if len(row) == 0 {
		r.Limit = max(s.cfg.Limit, 1)
	}
	return r, err
}

// Resources iterates over all resources that were ever used, in no order, with
// their counters. At least 16 requests, one for each shard; one read unit per
// 4 KB.
func (s *Semaphore[J]) Resources(ctx context.Context) iter.Seq2[Resource, error] {
	return func(yield func(Resource, error) bool) {
		for i := range shards {
			for row, err := range s.rows(ctx, fmt.Sprintf("%s%x", resourcePrefix, i), 0) {
				var r Resource
				if err == nil {
					r, err = parseResource(text(row, skName), row)
				}
				if !yield(r, err) || err != nil {
					return
				}
			}
		}
	}
}

// rows iterates over a partition in order, with consistent reads; page bounds
// how many rows one request reads, if it is not 0.
func (s *Semaphore[J]) rows(ctx context.Context, pk string, page int32) iter.Seq2[ddb.Item, error] {
	return func(yield func(ddb.Item, error) bool) {
		cond, consistent := "#pk = :pk", true
		in := &dynamodb.QueryInput{TableName: &s.core.Table, ConsistentRead: &consistent, KeyConditionExpression: &cond,
			ExpressionAttributeNames: map[string]string{"#pk": pkName}, ExpressionAttributeValues: ddb.Item{":pk": ddb.Text(pk)}}
		if page > 0 {
			in.Limit = &page
		}
		one := func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) ([]ddb.Item, ddb.Item, error) {
			in.ExclusiveStartKey = start
			out, err := s.client.Query(ctx, in, o)
			if err != nil {
				return nil, nil, err
			}
			return out.Items, out.LastEvaluatedKey, nil
		}
		for row, err := range s.core.Pages(ctx, "Query", one) {
			if !yield(row, repo.Classify(err)) {
				return
			}
		}
	}
}

// transact sends the writes of one change, again while only other transactions
// on the same rows are in the way.
func (s *Semaphore[J]) transact(ctx context.Context, opt ddb.Options, writes ...types.TransactWriteItem) ddb.Result {
	backoff := ddb.Backoff{Min: s.cfg.Wait.Min, Max: s.cfg.Wait.Max}
	opt.Timeout = s.cfg.Lease / 3
	for {
		res := s.core.Transact(ctx, s.client, opt, writes...)
		if res.Outcome != ddb.Refused || !ddb.Conflicted(res.Err) || ctx.Err() != nil {
			return res
		}
		ddb.Pause(ctx, backoff.Next(time.Now(), time.Time{}))
	}
}

// plain turns the outcome of a write without a condition into an error.
func (s *Semaphore[J]) plain(resource string, res ddb.Result) error {
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Unknown:
		return unknown(resource, res.Err)
	case ddb.Condition:
		return unknown(resource, nil)
	}
	return repo.Classify(res.Err)
}

func unknown(resource string, err error) error {
	if err == nil {
		return fmt.Errorf("resource %q: %w: an answer was lost, and others changed it since", resource, repo.ErrOutcomeUnknown)
	}
	return fmt.Errorf("resource %q: %w: %w", resource, repo.ErrOutcomeUnknown, err)
}

// checkName refuses names that cannot be keys.
func (s *Semaphore[J]) checkName(resource string) error {
	if resource == "" {
		return fmt.Errorf("%w: the resource has no name", repo.ErrKey)
	}
	_, err := s.table.EncodeKey(repo.Key{Partition: shard(resource), Sort: resource})
	return err
}

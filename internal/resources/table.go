package resources

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/recent"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// The table: partition key "pk", sort key "sk", both strings.
const (
	PK = "pk"
	SK = "sk"

	rowPrefix = "RESOURCE#" // + shard; sort key: the resource
)

// Shards spread resources over partitions: every change of a job touches its
// resource. The number is fixed, for programs that disagreed about it would
// count one resource twice.
const Shards = 16

// ShardOf is the shard of a resource.
func ShardOf(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name)) // never fails
	return int(h.Sum32() % Shards)
}

func shardKey(shard int) string { return fmt.Sprintf("%s%x", rowPrefix, shard) }

// RowKey is a key of the table.
func RowKey(pk, sk string) ddb.Item { return ddb.Item{PK: ddb.Text(pk), SK: ddb.Text(sk)} }

// Key is that of a resource's row.
func Key(name string) ddb.Item { return RowKey(shardKey(ShardOf(name)), name) }

// KeyOf is the key of a row, for errors.
func KeyOf(row ddb.Item) repo.Key {
	return repo.Key{Partition: Text(row, PK), Sort: Text(row, SK)}
}

// Config are the settings that permits and jobs have in common, with their defaults.
type Config struct {
	Limit     int // 0: that of the row
	Lease     time.Duration
	ClockSkew time.Duration
	Wait      repo.Wait
	Table     repo.TableConfig
}

// Table is the table in which resources are counted, as one program uses it.
type Table struct {
	Keys  *repo.KeyTable
	Core  *stored.Table
	Clock func() time.Time
	Cfg   Config

	client  repo.Client
	adopted *recent.Memory[bool] // resources whose row was told this program's limit

	lastAsked atomic.Int64 // what an operator asked for last through it, Unix microseconds
}

// maxAdopted is of how many resources, those that were used last, a process remembers it.
const maxAdopted = 10_000

// jobNames are the attributes that rows of jobs have in the same table.
var jobNames = []string{"id", "job", "state", "attempts", "until", "owner", "notBefore", "error", "marked", "died", "resource", "at", "level", "most", "timeout", "unique", "trace", "keep", "result", "ended", "spec", "next", "last"}

// New opens a table. It sends nothing.
func New(client repo.Client, name string, cfg Config) (*Table, error) {
	key := repo.KeySchema{Partition: repo.KeyAttribute{Name: PK}, Sort: repo.KeyAttribute{Name: SK}}
	keys, err := repo.NewKeyTable(client, name, key, cfg.Table)
	if err != nil {
		return nil, err
	}
	cfg.Table = repo.TableConfig{} // the table has it, and its secret is nobody else's
	core := link.Table(keys)
	own := append([]string{PK, SK, aQueued, aRunning, aDead, aLater, aLevels, aLimit, aFixed, aToken, aChanges, aRemoved, aPaused, aAsked}, jobNames...)
	if name := core.Attr.Clash(own, []string{PermitPrefix, OwnerPrefix, brokenPrefix}); name != "" {
		return nil, fmt.Errorf("%w: Table.Attributes has the name %q, which resources or jobs keep for themselves: on the end of a lease, for example, TTL would remove jobs", repo.ErrConfig, name)
	}
	return &Table{Keys: keys, Core: core, Clock: core.Clock, Cfg: cfg, client: client, adopted: recent.New[bool](maxAdopted)}, nil
}

// Leases are the settings of what is held of a resource.
func (t *Table) Leases() lease.Config {
	return lease.Config{Length: t.Cfg.Lease, Every: t.Cfg.Lease / 3, Pause: t.Backoff(),
		Clock: func() time.Time { return t.Clock() }, Jumps: t.Core.Jumps, Observe: t.Core.Observe}
}

// Backoff is how long is waited for others who change the same resource.
func (t *Table) Backoff() ddb.Backoff { return ddb.Backoff{Min: t.Cfg.Wait.Min, Max: t.Cfg.Wait.Max} }

// Dead reports whether others may take over what has ended at a time: its holder does not
// live, as far as clocks can tell.
func (t *Table) Dead(until, now time.Time) bool { return until.Add(t.Cfg.ClockSkew).Before(now) }

// CheckName refuses names that cannot be keys.
func (t *Table) CheckName(resource string) error {
	if resource == "" {
		return fmt.Errorf("%w: the resource has no name", repo.ErrKey)
	}
	_, err := t.Keys.EncodeKey(repo.Key{Partition: shardKey(ShardOf(resource)), Sort: resource})
	return err
}

// Page says how a partition is read.
type Page struct {
	After       string // the sort key behind which to begin
	Before      string // the sort key before which to end; "": at the end of the partition
	First, Next int    // rows in the first request, and in the others; 0: as many as the service gives
	Eventual    bool   // what is read may be out of date by a moment, at half the price
}

// Rows iterates over a partition in order, with consistent reads unless the page says
// otherwise.
func (t *Table) Rows(ctx context.Context, pk string, p Page) iter.Seq2[ddb.Item, error] {
	cond, consistent := "#pk = :pk", !p.Eventual
	in := &dynamodb.QueryInput{TableName: &t.Core.Name, ConsistentRead: &consistent, KeyConditionExpression: &cond,
		ExpressionAttributeNames: map[string]string{"#pk": PK}, ExpressionAttributeValues: ddb.Item{":pk": ddb.Text(pk)}}
	if p.Before != "" {
		cond += " AND #sk < :end"
		in.ExpressionAttributeNames["#sk"], in.ExpressionAttributeValues[":end"] = SK, ddb.Text(p.Before)
	}
	asked := ddb.Asked{Of: ddb.Item{PK: ddb.Text(pk)}, Sort: SK}
	if p.After != "" {
		asked.After = RowKey(pk, p.After)
	}
	return t.Core.Pages(ctx, "Query", ddb.Options{Holding: consistent}, asked, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		rows := p.Next
		if in.ExclusiveStartKey = start; len(start) == 0 {
			rows, in.ExclusiveStartKey = p.First, asked.After
		}
		if in.Limit = nil; rows > 0 {
			in.Limit = aws.Int32(int32(rows))
		}
		return t.client.Query(ctx, in, o)
	})
}

// Parsed iterates over what rows say. One that cannot be read comes with its error.
func Parsed[T any](rows iter.Seq2[ddb.Item, error], parse func(ddb.Item) (T, error)) iter.Seq2[T, error] {
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

// Update is a write of a row whose expression is far below DynamoDB's limit for one: that
// is all that Update of a write refuses.
func Update(w *ddb.Write, key ddb.Item) *dynamodb.UpdateItemInput {
	in, _ := w.Update(key)
	return in
}

// Write changes the row of a resource.
func (t *Table) Write(ctx context.Context, resource string, w *ddb.Write, opt ddb.Options) ddb.Result {
	return t.Core.Update(ctx, Update(w, Key(resource)), opt)
}

// Plain turns the outcome of a write without a condition into an error.
func Plain(resource string, res ddb.Result) error {
	switch res.Outcome {
	case ddb.Applied:
		return nil
	case ddb.Unknown:
		return Unknown(resource, res.Err)
	case ddb.Condition:
		return Unknown(resource, nil)
	}
	return res.Err
}

// Unknown is ErrOutcomeUnknown of a resource. Without an error others have changed it
// since.
func Unknown(resource string, err error) error {
	if err == nil {
		err = errChangedSince
	}
	return fmt.Errorf("resource %q: %w: %w", resource, repo.ErrOutcomeUnknown, err)
}

var errChangedSince = errors.New("an answer was lost, and others changed it since")

// Integer reads a number of a row: from 0, which it is if it is absent, to most.
func Integer(row ddb.Item, name string, most int64) (int64, error) {
	v, ok := row[name]
	if !ok {
		return 0, nil
	}
	n, err := ddb.Int(v)
	if err == nil && (n < 0 || n > most) {
		err = fmt.Errorf("it is not between 0 and %d", most)
	}
	if err != nil {
		return 0, fmt.Errorf("attribute %q: %w", name, err)
	}
	return n, nil
}

// Text reads a text of a row, "" where there is none.
func Text(row ddb.Item, name string) string {
	if s, ok := row[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

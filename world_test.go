package dynahold_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Account is an item that all strategies can keep.
type Account struct {
	ID      string   `dynamodbav:"id" repo:"pk"`
	Seq     int      `dynamodbav:"seq" repo:"sk"`
	Balance int64    `dynamodbav:"balance"`
	Ops     []string `dynamodbav:"ops,omitempty"`
	Tags    []string `dynamodbav:"tags,omitempty"`
	Note    string   `dynamodbav:"note,omitempty"`
	At      int64    `dynamodbav:"at" repo:"eventtime"`
	Version int64    `dynamodbav:"version" repo:"version"`
}

// engine is shared by the tests of this package; every test has its own table.
var engine *localdb.Engine

// withEngine runs the tests with an engine.
func withEngine(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	var err error
	engine, err = localdb.Start(ctx, localdb.Config{})
	cancel()
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		return 1
	}
	code := m.Run()
	_ = engine.Close()
	return code
}

// world is a table of its own on the engine.
type world struct {
	table  string
	client *dynamodb.Client
	count  *fault.Counter
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{table: "test-" + rand.Text(), client: engine.NewClient(quickRetry)}
	if err := w.repoTable(t, w.client).EnsureTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.drop(t)
	return w
}

// at is another table on the same engine, which is not created.
func (w *world) at(table string) *world { return &world{table: table, client: w.client} }

func (w *world) drop(t testing.TB) {
	t.Cleanup(func() {
		_, err := w.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &w.table})
		if err != nil {
			t.Error(err)
		}
	})
}

func (w *world) repoTable(t testing.TB, client repo.Client) *repo.Table[Account] {
	t.Helper()
	table, err := repo.NewTable[Account](client, w.table, repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// quickRetry keeps the SDK's policy but not its patience.
func quickRetry(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
		so.MaxAttempts = 10
		so.MaxBackoff = 20 * time.Millisecond
		so.RateLimiter = ratelimit.None
	})
}

func (w *world) newClient(options ...func(*dynamodb.Options)) *dynamodb.Client {
	return engine.NewClient(append([]func(*dynamodb.Options){quickRetry}, options...)...)
}

// counted is a client whose requests are counted in w.count from now on.
func (w *world) counted() *dynamodb.Client {
	return w.newClient(func(o *dynamodb.Options) {
		w.count = fault.NewCounter(o.HTTPClient)
		o.HTTPClient = w.count
	})
}

// raw reads an item as DynamoDB has it.
func (w *world) raw(t testing.TB, key repo.Key) map[string]types.AttributeValue {
	t.Helper()
	k, err := w.repoTable(t, w.client).EncodeKey(key)
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &w.table, Key: k, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// strategy is a row of the suite's table.
type strategy struct {
	name string
	open func(t testing.TB, w *world, client repo.Client) repo.Repository[Account]
	// combines: one write carries the changes of all callers that wait.
	combines bool
}

func strategies() []strategy {
	return []strategy{
		{"nolock", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(nolock.New(w.repoTable(t, c), nolock.Config{Attempts: 1000}))(t)
		}, false},
		{"optimistic", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000}))(t)
		}, false},
		{"pessimistic", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{}))(t)
		}, false},
		{"pessimistic, clockless, renewing", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Clockless: true, Renew: true, LateCommit: true}))(t)
		}, false},
		{"pessimistic, combining", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Combine: true}))(t)
		}, true},
		{"pessimistic, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Fair: true}))(t)
		}, false},
		{"pessimistic, combining, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(pessimistic.New(w.repoTable(t, c), pessimistic.Config{Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm, combining, fair", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true, Fair: true}))(t)
		}, true},
		{"optimistic, warm", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100}))(t)
		}, false},
		{"optimistic, warm, combining", func(t testing.TB, w *world, c repo.Client) repo.Repository[Account] {
			return must(optimistic.New(w.repoTable(t, c), optimistic.Config{Attempts: 1000, Warm: 100, Combine: true}))(t)
		}, true},
	}
}

func eachStrategy(t *testing.T, f func(t *testing.T, w *world, s strategy)) {
	for _, s := range strategies() {
		t.Run(s.name, func(t *testing.T) { f(t, newWorld(t), s) })
	}
}

// must fails the test on an error: must(f(x))(t).
func must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

func (w *world) locker(t testing.TB, client repo.Client, cfg lockedread.Config) *lockedread.Locker[Account] {
	t.Helper()
	return must(lockedread.New(w.repoTable(t, client), cfg))(t)
}

package lockedread_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

type stock struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Count int    `dynamodbav:"count"`
}

var (
	engine *localdb.Engine
	key    = repo.Key{Partition: "apple"}
)

func TestMain(m *testing.M) {
	if os.Getenv(childEndpoint) != "" {
		os.Exit(child())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	var err error
	engine, err = localdb.Start(ctx, localdb.Config{})
	cancel()
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	code := m.Run()
	_ = engine.Close()
	os.Exit(code)
}

// bench is a table with one item, and a counted client.
type bench struct {
	table  string
	client *dynamodb.Client
	count  *fault.Counter
	script atomic.Pointer[script] // what befalls the requests
}

type script = func(op string, n int, body []byte) fault.Kind

// faults lets a script decide from now on; nil ends it.
func (b *bench) faults(s script) {
	if s == nil {
		b.script.Store(nil)
		return
	}
	b.script.Store(&s)
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{table: "lockedread-" + rand.Text()}
	b.client = engine.NewClient(func(o *dynamodb.Options) {
		in := fault.New(o.HTTPClient, fault.Config{Script: func(op string, n int, body []byte) fault.Kind {
			if s := b.script.Load(); s != nil {
				return (*s)(op, n, body)
			}
			return fault.None
		}})
		b.count = fault.NewCounter(in)
		o.HTTPClient = b.count
	})
	if err := b.tableOf(t).EnsureTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.faults(nil)
		_, err := b.client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &b.table})
		if err != nil {
			t.Error(err)
		}
	})
	b.put(t, nil)
	b.count.Reset()
	return b
}

func (b *bench) tableOf(t testing.TB) *repo.Table[stock] {
	t.Helper()
	table, err := repo.NewTable[stock](b.client, b.table, repo.TableConfig{})
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func (b *bench) locker(t testing.TB, cfg lockedread.Config) *lockedread.Locker[stock] {
	t.Helper()
	l, err := lockedread.New(b.tableOf(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// put replaces the item, as a program without the library would.
func (b *bench) put(t testing.TB, more map[string]types.AttributeValue) {
	t.Helper()
	item := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}, "count": &types.AttributeValueMemberN{Value: "10"}}
	for name, v := range more {
		item[name] = v
	}
	if _, err := b.client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) raw(t testing.TB) map[string]types.AttributeValue {
	t.Helper()
	out, err := b.client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.table, ConsistentRead: aws.Bool(true),
		Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func acquire(t testing.TB, l *lockedread.Locker[stock]) *lockedread.Held[stock] {
	t.Helper()
	h, err := l.TryAcquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

func wantCount(t testing.TB, b *bench, want int) {
	t.Helper()
	got, err := b.tableOf(t).Get(t.Context(), key)
	if err != nil || got.Count != want {
		t.Errorf("count %d, %v; want %d", got.Count, err, want)
	}
}

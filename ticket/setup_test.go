package ticket_test

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/ticket"
)

var engine *localdb.Engine

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

type script = func(op string, n int, body []byte) fault.Kind

// peer is a client with a counter and a network of its own.
type peer struct {
	*dynamodb.Client
	count *fault.Counter
	net   *fault.Injector
	rule  atomic.Pointer[script]
}

func newPeer() *peer {
	p := &peer{}
	p.Client = engine.NewClient(func(o *dynamodb.Options) {
		p.net = fault.New(o.HTTPClient, fault.Config{Script: func(op string, n int, body []byte) fault.Kind {
			if s := p.rule.Load(); s != nil {
				return (*s)(op, n, body)
			}
			return fault.None
		}})
		p.count = fault.NewCounter(p.net)
		o.HTTPClient = p.count
		o.Retryer = quick()
	})
	return p
}

// quick repeats without the long pauses of the SDK's own policy.
func quick() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff, o.RateLimiter = 5, 20*time.Millisecond, ratelimit.None
	})
}

// faults lets a script decide from now on; nil ends it.
func (p *peer) faults(s script) {
	if s == nil {
		p.rule.Store(nil)
		return
	}
	p.rule.Store(&s)
}

// cut is what a killed process looks like from outside: nothing is sent.
func (p *peer) cut() { p.faults(func(string, int, []byte) fault.Kind { return fault.Refuse }) }

// first lets one fault befall the first request whose body has the text.
func (p *peer) first(text string, kind fault.Kind) {
	var hit atomic.Bool
	p.faults(func(_ string, _ int, body []byte) fault.Kind {
		if strings.Contains(string(body), text) && hit.CompareAndSwap(false, true) {
			return kind
		}
		return fault.None
	})
}

// bench is a table, and the client of most tests.
type bench struct {
	*peer
	table string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{peer: newPeer(), table: "ticket-" + rand.Text()}
	if err := b.queue(t, ticket.Config{}).EnsureTable(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := engine.Client().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &b.table})
		if err != nil {
			t.Error(err)
		}
	})
	b.count.Reset()
	return b
}

func (b *bench) queue(t testing.TB, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	return b.queueOf(t, b.peer, cfg)
}

// queueOf is a queue as another process has it.
func (b *bench) queueOf(t testing.TB, p *peer, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	q, err := ticket.New(p.Client, b.table, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.faults(nil)
		_ = q.Close(context.Background()) // what the test left behind
	})
	return q
}

func (b *bench) raw(t testing.TB, entity string) ddb.Item {
	t.Helper()
	out, err := engine.Client().GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &b.table, ConsistentRead: aws.Bool(true),
		Key: ddb.Item{"queue": ddb.Text("/" + entity)}})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

func (b *bench) put(t testing.TB, item ddb.Item) {
	t.Helper()
	if _, err := engine.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.table, Item: item}); err != nil {
		t.Fatal(err)
	}
}

// entries counts what stands on an item, and compares it with its count.
func entries(t testing.TB, item ddb.Item) (n int) {
	t.Helper()
	for name := range item {
		if strings.HasPrefix(name, "w_") {
			n++
			if item["b_"+name[2:]] == nil {
				t.Errorf("entry %s has no end", name)
			}
		}
	}
	if count := number(item["n"]); count != itoa(n) && (count != "" || n > 0) {
		t.Errorf("n is %s with %d entries", count, n)
	}
	return n
}

func number(v types.AttributeValue) string {
	if n, ok := v.(*types.AttributeValueMemberN); ok {
		return n.Value
	}
	return ""
}

func lock(t testing.TB, q *ticket.Queue, entity string) *ticket.Turn {
	t.Helper()
	turn, err := q.Lock(t.Context(), entity)
	if err != nil {
		t.Fatal(err)
	}
	return turn
}

func join(t testing.TB, q *ticket.Queue, entity string) *ticket.Ticket {
	t.Helper()
	k, err := q.Join(t.Context(), entity)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func done(t testing.TB, turn *ticket.Turn) {
	t.Helper()
	if err := turn.Done(context.Background()); err != nil {
		t.Error(err)
	}
}

func wantIs(t testing.TB, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error %v, want %v", err, target)
	}
}

func wantEmpty(t testing.TB, b *bench, entity string) {
	t.Helper()
	if n := entries(t, b.raw(t, entity)); n != 0 {
		t.Errorf("%d entries stayed behind", n)
	}
}

package ticket_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

func TestMain(m *testing.M) { rig.MainOr(m, hold) }

// bench is a table of queues.
type bench struct{ *rig.Rig }

func newBench(t testing.TB) bench {
	t.Helper()
	b := bench{rig.New(t)}
	rig.Is(t, b.queue(t, ticket.Config{}).EnsureTable(t.Context()))
	b.Count.Reset()
	return b
}

// first lets one fault befall the first request whose body has the text.
func (b bench) first(text string, kind fault.Kind) {
	var hit atomic.Bool
	b.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if strings.Contains(string(body), text) && hit.CompareAndSwap(false, true) {
			return kind
		}
		return fault.None
	})
}

func (b bench) queue(t testing.TB, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	return b.queueOf(t, b.Rig, cfg)
}

// queueOf is a queue as another process has it.
func (b bench) queueOf(t testing.TB, p *rig.Rig, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	q := rig.Must(ticket.New(p.Client, b.Table, cfg))(t)
	t.Cleanup(func() {
		p.Faults(nil)
		_ = q.Close(context.Background()) // what the test left behind
	})
	return q
}

func (b bench) raw(t testing.TB, entity string) ddb.Item {
	t.Helper()
	return b.Item(t, ddb.Item{"queue": ddb.Text("/" + entity)})
}

func (b bench) put(t testing.TB, item ddb.Item) {
	t.Helper()
	rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}))(t)
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
	return rig.Must(q.Lock(t.Context(), entity))(t)
}

func join(t testing.TB, q *ticket.Queue, entity string) *ticket.Ticket {
	t.Helper()
	return rig.Must(q.Join(t.Context(), entity))(t)
}

func done(t testing.TB, turn *ticket.Turn) {
	t.Helper()
	rig.Is(t, turn.Done(context.Background()))
}

func wantEmpty(t testing.TB, b bench, entity string) {
	t.Helper()
	rig.Equal(t, entries(t, b.raw(t, entity)), 0, "entries stayed behind")
}

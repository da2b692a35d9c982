package lock

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

// An item with nothing but a key and a number.
type tin struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Count int    `dynamodbav:"count"`
}

var (
	key = repo.Key{Partition: "beans"}
	raw = ddb.Item{"id": ddb.Text("beans")}
)

// process is a locker with a client of its own, as another process has it.
type process struct {
	*rig.Rig
	*Locker
	ahead time.Duration // of its clock
}

// open makes a table with one item, and a process.
func open(t *testing.T, cfg Config) *process {
	t.Helper()
	p := newProcess(t, rig.New(t), cfg)
	table := rig.Must(repo.NewTable[tin](p.Client, p.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	p.put(t, ddb.Item{"id": ddb.Text("beans"), "count": ddb.Integer(1)})
	return p
}

func newProcess(t *testing.T, r *rig.Rig, cfg Config) *process {
	t.Helper()
	table := rig.Must(repo.NewTable[tin](r.Client, r.Table, repo.TableConfig{}))(t)
	p := &process{Rig: r}
	cfg.Owner, cfg.Skew, cfg.Wait = "me", time.Second, repo.Wait{Min: time.Millisecond, Max: 5 * time.Millisecond}
	if cfg.Lease == 0 {
		cfg.Lease = time.Hour
	}
	cfg.Clock = func() time.Time { return time.Now().Add(p.ahead) }
	p.Locker = NewLocker(protocol.Of(link.Table(table.KeyTable)), cfg)
	p.HoldTimes = NewHoldTimes()
	return p
}

// other is another process on the same table.
func (p *process) other(t *testing.T) *process {
	t.Helper()
	o := newProcess(t, p.Peer(), p.Config)
	o.Owner = "other"
	return o
}

func (p *process) put(t *testing.T, item ddb.Item) {
	t.Helper()
	rig.Must(rig.Client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &p.Table, Item: item}))(t)
}

func (p *process) delete(t *testing.T) {
	t.Helper()
	rig.Must(rig.Client().DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &p.Table, Key: raw}))(t)
}

// take takes the item's lock, which must work.
func (p *process) take(t *testing.T) *Lock {
	t.Helper()
	h, _, err := p.Acquire(t.Context(), key, raw, Request{})
	rig.Is(t, err)
	if err != nil {
		t.FailNow()
	}
	return h
}

// record is what stands on the item; exists is false where there is none.
func (p *process) record(t *testing.T) (l stored.Record, item map[string]types.AttributeValue) {
	t.Helper()
	item = p.Item(t, raw)
	l, err := p.Core.ParseRecord(item)
	rig.Is(t, err)
	return l, item
}

// count is the number on the item, -1 without one.
func count(item ddb.Item) int64 {
	n, err := ddb.Int(item["count"])
	if err != nil {
		return -1
	}
	return n
}

// setCount is the change of a commit.
func setCount(n int64) func(*protocol.Write) error {
	return func(w *protocol.Write) error { w.Set("count", ddb.Integer(n)); return nil }
}

// endsAt is a context that ends when the nth request of the process is sent,
// counted from 1, to which kind happens.
func (p *process) endsAt(t *testing.T, nth int, kind fault.Kind) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	n := 0
	p.Faults(func(string, int, []byte) fault.Kind {
		if n++; n != nth {
			return fault.None
		}
		cancel()
		return kind
	})
	return ctx
}

package ticket_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

// How long a call takes is measured in virtual time, in which a busy machine
// takes no time at all. The requests go to the real engine all the same.

// fate is what befalls a request.
type fate int

const (
	delivered fate = iota
	dead           // it never arrives, and nobody says so
	lost           // it arrives, and its answer never does
	slow           // it takes a tenth of a second
)

// wire is the network of a process in virtual time, on which requests have a fate.
type wire struct {
	rig.Mortal

	mu   sync.Mutex
	rule func(op, body string) fate // guarded by mu; nil: all is delivered
}

func newWire(network fault.Doer) *wire {
	w := &wire{Mortal: rig.Mortal{Next: network}}
	w.Lost = w.befalls
	return w
}

// obey lets a rule decide what befalls each request from now on.
func (w *wire) obey(rule func(op, body string) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rule = rule
}

// all lets the same befall every request from now on.
func (w *wire) all(f fate) { w.obey(func(string, string) fate { return f }) }

func (w *wire) befalls(op, body string) (before, after bool) {
	w.mu.Lock()
	rule := w.rule
	w.mu.Unlock()
	if rule == nil {
		return false, false
	}
	f := rule(op, body)
	if f == slow {
		time.Sleep(100 * time.Millisecond)
	}
	return f == dead, f == lost
}

// bubble is a table in a bubble of virtual time.
type bubble struct {
	bench
	wire   *wire
	late   *late
	client *dynamodb.Client // whose requests the wire carries
	sound  *dynamodb.Client // of another process, which nothing befalls
}

// inBubble runs a test in a bubble.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Helper()
	b := &bubble{bench: newBench(t)}
	rig.InVirtualTime(t, 64, func(t *testing.T, network fault.Doer) {
		over := func(d fault.Doer) *dynamodb.Client {
			return rig.Client(func(o *dynamodb.Options) { o.HTTPClient = d })
		}
		b.late = &late{next: network}
		b.wire = newWire(b.late)
		b.client, b.sound = over(b.wire), over(network)
		test(t, b)
	})
}

// open makes a queue that is closed, on a sound network, at the end of the test.
func (b *bubble) open(t *testing.T, client *dynamodb.Client, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	q := rig.Must(ticket.New(client, b.Table, cfg))(t)
	t.Cleanup(func() {
		b.wire.obey(nil)
		_ = q.Close(context.Background())
		synctest.Wait()
	})
	return q
}

// list is the queue as another process sees it when all that is under way is over.
func (b *bubble) list(t *testing.T) []ticket.Entry {
	t.Helper()
	synctest.Wait()
	return rig.Must(rig.Must(ticket.New(b.sound, b.Table, ticket.Config{}))(t).List(context.Background(), "door"))(t)
}

// leaveDead leaves an entry whose owner renews it no more, past its end.
func (b *bubble) leaveDead(t *testing.T) {
	t.Helper()
	turn := lock(t, b.open(t, b.client, ticket.Config{Lease: time.Second}), "door")
	b.wire.all(dead)
	<-turn.Context().Done()
	time.Sleep(3 * time.Second) // past the allowance for clocks
	b.wire.obey(nil)
}

// item is the queue's item.
func (b *bubble) item(t *testing.T) ddb.Item {
	t.Helper()
	key := ddb.Item{"queue": ddb.Text("/door")}
	return rig.Must(b.sound.GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &b.Table, Key: key}))(t).Item
}

// tamper changes attributes of the queue's item by hand.
func (b *bubble) tamper(t *testing.T, changes ddb.Item) {
	t.Helper()
	item := b.item(t)
	maps.Copy(item, changes)
	rig.Must(b.sound.PutItem(context.Background(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}))(t)
}

package delegate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// A write that is throttled until others have covered its traces on the item has its
// verdict from what the process saw meanwhile: also on an item that nobody has written by the
// library before.
func TestAThrottledWriteHasAVerdict(t *testing.T) {
	t.Run("made by the library", func(t *testing.T) { throttledWrite(t, false) })
	t.Run("put by hand", func(t *testing.T) { throttledWrite(t, true) })
}

func throttledWrite(t *testing.T, byHand bool) {
	b := rig.New(t)
	first := start(t, b.Client, b.Table)
	rig.Is(t, first.items.Table().EnsureTable(t.Context()))
	if byHand {
		rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: ddb.Item{"shop": ddb.Text("s"), "id": ddb.Text("list"), "version": ddb.Integer(1)}}))(t)
	} else {
		rig.Must(first.items.Create(t.Context(), list{Shop: "s", ID: "list"}))(t)
	}
	const covering = 14 // an item remembers eight writes
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var others atomic.Int64
		in := fault.New(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond}, fault.Config{Rate: 1, Script: func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" && others.Load() < covering {
				return fault.Throttle
			}
			return fault.None
		}})
		throttled := start(t, rig.Client(rig.Over(in), func(o *dynamodb.Options) { o.RetryMaxAttempts = 30 }), b.Table)
		client := rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond}))
		ended := make(chan error)
		go func() {
			_, err := throttled.add.Do(context.Background(), key, "throttled")
			ended <- err
		}()
		for in.Faulted() == 0 {
			time.Sleep(time.Millisecond) // of virtual time
		}
		for range covering {
			other := start(t, client, b.Table) // each a process: its own ids it would forget
			rig.Must(other.items.Update(context.Background(), key, func(_ context.Context, l *list) error { l.Others++; return nil }))(t)
			others.Add(1)
		}
		rig.Is(t, <-ended)
		rig.Is(t, throttled.all.Close(context.Background()))
	})
	got := rig.Must(first.items.Get(t.Context(), key))(t)
	if got.Others != covering || len(got.Ops) != 1 {
		t.Errorf("%+v", got)
	}
}

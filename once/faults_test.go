package once_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
)

// Every fault at every request: at most one run is completed, and every call that ends
// well has its result. A call whose end nobody knows ends known when it is repeated.
func TestFaults(t *testing.T) {
	for nth := range 3 {
		for _, kind := range fault.AllKinds() {
			t.Run(fmt.Sprintf("%v at request %d", kind, nth), func(t *testing.T) {
				t.Parallel()
				s := newStore(t)
				client := s.Peer()
				faulty := s.open(t, client.Client, once.Config{Lease: time.Second, ClockSkew: -1})
				var n atomic.Int64
				client.Faults(func(string, int, []byte) fault.Kind {
					if int(n.Add(1)) == nth+1 {
						return kind
					}
					return fault.None
				})
				var runs atomic.Int64
				got, err := once.Do(t.Context(), faulty, "order", giving(&runs))
				if err == nil && (got.Number != 1 || runs.Load() != 1) {
					t.Errorf("%+v after %d runs", got, runs.Load())
				}
				if nth == 2 {
					_, err = once.Do(t.Context(), faulty, "order", never(t))
					rig.Is(t, err)
				}
				client.Faults(nil)
				client.Net.Wait()
				first := rig.Must(once.Do(t.Context(), s.Store, "order", giving(&runs)))(t)
				again := rig.Must(once.Do(t.Context(), s.Store, "order", never(t)))(t)
				if first != again || err == nil && nth < 2 && first != got {
					t.Errorf("%+v, then %+v, then %+v", got, first, again)
				}
			})
		}
	}
}

// child is a process that never ends what it has begun.
func child(args []string) error {
	s := rig.Must(once.New((&rig.Rig{Table: args[0]}).Peer().Client, args[0], once.Config{Lease: time.Second}))(alone{})
	_, err := once.Do(context.Background(), s, "order", func(context.Context, once.Run) (receipt, error) { select {} })
	return err
}

// alone stands in for a test in a process that runs none.
type alone struct{ testing.TB }

func (alone) Helper()           {}
func (alone) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// A process that is killed in the middle of a run leaves the id to others when its lease
// is over.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	c := rig.Child(t, s.Table)
	rig.Is(t, c.Start())
	rig.Await(t, "it runs", func() bool { return s.Item(t, rawKey("order"))["lockedBy"] != nil })
	rig.Is(t, c.Process.Kill())
	_ = c.Wait() // it was killed
	var runs atomic.Int64
	rig.Must(once.Do(t.Context(), s.open(t, s.Client, once.Config{ClockSkew: -1}), "order", giving(&runs)))(t)
	rig.Equal(t, runs.Load(), 1, "runs")
}

package delegate_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// Where all requests take long, a leader is not taken for gone after the time that would do
// for others: those who wait would replace it again and again.
func TestALeaderFarAwayIsNotReplaced(t *testing.T) {
	b, first := withList(t)
	const processes, each, trip = 8, 12, 120 * time.Millisecond
	seen := newAudit()
	var took time.Duration
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		began := time.Now()
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: trip / 2})), b.Table)
			all.Go(func() {
				for i := range each {
					op := fmt.Sprintf("%d-%d", n, i)
					_, err := p.add.Do(context.Background(), key, op)
					seen.record(op, err)
				}
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		all.Wait()
		took = time.Since(began)
	})
	got := rig.Must(first.items.Get(t.Context(), key))(t)
	seen.check(t, got.Ops)
	t.Logf("%v, version %d", took, got.Version)
	if most := 20 * each * trip; took > most { // else they never come to an end
		t.Errorf("%d changes of each took %v, more than %v", each, took, most)
	}
}

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

// Where the ids of operations lie in rows beside the item, a leader asks them side by side,
// and is not taken for gone meanwhile: processes that all lead would ask all of them again
// and again.
func TestManyProcessesWithMoreIDsThanTheItemHas(t *testing.T) {
	t.Parallel()
	b, first := withList(t)
	const processes, callers, each = 6, 4, 15
	seen := newAudit()
	var took time.Duration
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		began := time.Now()
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})), b.Table)
			all.Go(func() {
				var calls sync.WaitGroup
				for c := range callers {
					calls.Go(func() {
						for i := range each {
							op := fmt.Sprintf("%d-%d-%d.", n, c, i)
							_, err := p.add.Once(op).Do(context.Background(), key, op)
							seen.record(op, err)
						}
					})
				}
				calls.Wait()
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		all.Wait()
		took = time.Since(began)
	})
	got := rig.Must(first.items.Get(t.Context(), key))(t)
	seen.check(t, got.Ops)
	t.Logf("%v", took)
	if took > 10*time.Second || len(got.Ops) != processes*callers*each {
		t.Errorf("%d operations in %v", len(got.Ops), took)
	}
}

package delegate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// While mail keeps coming the leader carries out the commands of its own callers, too: they
// would else wait for as long as that lasts.
func TestProcessesGetTheSame(t *testing.T) {
	b := rig.New(t)
	first := start(t, b.Client, b.Table)
	rig.Is(t, first.items.Table().EnsureTable(t.Context()))
	rig.Must(first.items.Create(t.Context(), list{Shop: "s", ID: "list"}))(t)
	const processes, callers, span = 4, 4, 500 * time.Millisecond
	var got [processes]int
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})), b.Table)
			for c := range callers {
				all.Go(func() {
					for i, began := 0, time.Now(); time.Since(began) < span; i++ {
						_, err := p.add.Do(context.Background(), key, fmt.Sprintf("%d-%d-%d.", n, c, i))
						rig.Is(t, err)
						mu.Lock()
						got[n]++
						mu.Unlock()
					}
				})
			}
			t.Cleanup(func() { rig.Is(t, p.all.Close(context.Background())) })
		}
		all.Wait()
	})
	if least, most := slices.Min(got[:]), slices.Max(got[:]); 4*least < 3*most {
		t.Errorf("processes got %v", got)
	}
}

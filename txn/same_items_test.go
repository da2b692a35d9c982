package txn_test

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// distant is a network on which each request takes some time.
type distant struct{ fault.Doer }

func (d distant) Do(r *http.Request) (*http.Response, error) {
	time.Sleep(2 * time.Millisecond)
	defer time.Sleep(2 * time.Millisecond)
	return d.Doer.Do(r)
}

// Callers of one process at the same items come to them one by one, once they have refused
// each other: however many they are, few of their commits are in vain, and none waits for
// long.
func TestCallersOfOneProcessDoNotRefuseEachOther(t *testing.T) {
	newWorld(t) // makes the tables
	rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		const callers, each = 24, 8
		p := openProcess(t, distant{network})
		s := p.stores["optimistic"]
		ids := []string{p.id("x"), p.id("y")}
		for _, id := range ids {
			rig.Is(t, s.create(t.Context(), id, 0))
		}
		p.Count.Reset()
		began := time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					rig.Is(t, adds(t.Context(), s, txn.Config{}, ids...))
				}
			})
		}
		all.Wait()
		took := time.Since(began) / (callers * each)
		commits := float64(p.Count.Counts()["TransactWriteItems"]) / (callers * each)
		t.Logf("%.2f commits for each transaction, one in %v", commits, took)
		for _, id := range ids {
			has(t, s, id, callers*each)
		}
		if commits > 3 || took > 20*time.Millisecond {
			t.Errorf("%.2f commits for each transaction, one in %v", commits, took)
		}
	})
}

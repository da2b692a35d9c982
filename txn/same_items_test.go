package txn_test

import (
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// Callers of one process at the same items come to them one by one, once they have refused
// each other: however many they are, few of their commits are in vain.
func TestCallersOfOneProcessDoNotRefuseEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T, p, other *process) {
		const callers, each = 24, 8
		s := p.stores["optimistic"]
		ids := []string{p.id("x"), p.id("y")}
		for _, id := range ids {
			rig.Is(t, s.create(t.Context(), id, 0))
		}
		p.Count.Reset()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range each {
					rig.Is(t, adds(t.Context(), s, txn.Config{}, ids...))
				}
			})
		}
		all.Wait()
		for _, id := range ids {
			has(t, other.stores["optimistic"], id, callers*each)
		}
		commits := float64(p.Count.Counts()["TransactWriteItems"]) / (callers * each)
		if commits > 2.2 { // without passes there are eleven
			t.Errorf("%.2f commits for each transaction", commits)
		}
		t.Logf("%.2f commits for each transaction", commits)
	})
}

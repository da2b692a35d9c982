package semaphore_test

import (
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// While as many permits are held as the limit allows, nobody gets another, however long
// they are held: the limit of the programs, that of the row, or that which was set for all.
// Each has a token of its own.
func TestHeldPermitsUseUpTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 2
	for name, set := range map[string]bool{"of the programs": false, "set for all": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			cfg := semaphore.Config{Limit: limit}
			if set {
				cfg.Limit = 0
				rig.Is(t, b.open(t, cfg).SetLimit(t.Context(), "printer", limit))
			}
			last := int64(0)
			for n := range limit + 2 {
				p, err := b.open(t, cfg).TryAcquire(t.Context(), "printer")
				if n >= limit {
					rig.Is(t, err, semaphore.ErrBusy)
					continue
				}
				rig.Is(t, err)
				if p.Token() <= last {
					t.Errorf("token %d after %d", p.Token(), last)
				}
				last = p.Token()
			}
			wantRunning(t, b.open(t, cfg), "printer", limit)
		})
	}
}

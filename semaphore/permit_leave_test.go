package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Whoever leaves the line does so beside what is heard in that moment of the permit that
// it was to have. For the race detector; and it is repeated, for it depends on luck.
func TestLeavingTheLineWhileAPermitIsNotPassedOn(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		for range rig.Share(20, 200) {
			first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
			ctx, cancel := context.WithCancel(t.Context())
			second := p.acquire(ctx)
			rig.Is(t, other.s.BreakPermit(t.Context(), "printer", first.ID()))
			p.lose(func(body string) (before, after bool) {
				if passes(body) {
					cancel()
					time.Sleep(time.Second - 2*p.net.Latency) // for so long it waits for the answer
				}
				return false, false
			})
			rig.Is(t, first.Release(t.Context()), repo.ErrLockLost)
			rig.Is(t, (<-second).err, semaphore.ErrBusy, context.Canceled)
			p.lose(nil)
		}
		wantNone(t, p.s)
	})
}

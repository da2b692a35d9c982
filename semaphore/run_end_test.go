package semaphore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// All tries to give a job back have 3 s together.
func TestRunEndsThreeSecondsAfterItsContext(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var over atomic.Bool
		var ends atomic.Int32
		wire := &rig.Mortal{Next: network, Lost: func(op, _ string) (before, after bool) {
			return over.Load() && op == "TransactWriteItems" && ends.Load() >= 10, false
		}}
		client := rig.Client(rig.Over(wire), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if over.Load() && op == "TransactWriteItems" && ends.Add(1) <= 10 {
				time.Sleep(250 * time.Millisecond)
				return fault.Throttle
			}
			return fault.None
		}))
		s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{Lease: time.Hour}))(t)
		put(t, s, "r", deploy{"v", 1})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		rig.Is(t, s.Run(ctx, func(held context.Context, _ *semaphore.Job[deploy]) error {
			over.Store(true)
			began = time.Now()
			cancel()
			return errors.New("told to stop")
		}))
		if took := time.Since(began); took > 3*time.Second+100*time.Millisecond {
			t.Errorf("it ended %v after its context", took)
		}
		synctest.Wait()
	})
}

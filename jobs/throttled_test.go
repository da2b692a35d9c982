package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// A dispatcher that could not read a resource starts its jobs with the next chance.
func TestAResourceThatCouldNotBeRead(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var broken atomic.Bool
		client := rig.Client(rig.Over(network), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if broken.Load() && (op == "GetItem" || op == "Query") {
				return fault.Error500
			}
			return fault.None
		}))
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Poll: time.Hour}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended, handled := make(chan error), make(chan int, 2)
		go func() {
			ended <- s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error { handled <- j.Value().N; return nil })
		}()
		synctest.Wait()
		broken.Store(true)
		put(t, s, "staging", deploy{"v", 1})
		time.Sleep(time.Minute) // looks are rare now
		broken.Store(false)
		put(t, s, "staging", deploy{"v", 2})
		time.Sleep(time.Second)
		if n := len(handled); n != 2 {
			t.Errorf("%d jobs are handled, want 2", n)
		}
		cancel()
		rig.Is(t, <-ended)
	})
}

package semaphore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// A permit does not stay in one process while another waits for it.
func TestALineOfPermitsLetsOthersIn(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := p.s.Do(ctx, "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil })
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		began := time.Now()
		const rounds = 10
		for range rounds {
			rig.Is(t, other.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil }))
		}
		took := time.Since(began)
		cancel()
		all.Wait()
		if took > rounds*3*time.Second {
			t.Errorf("%v for %d permits", took, rounds)
		}
		wantNone(t, p.s)
	})
}

// A process that dies with a permit and a line behind it keeps others out for its lease.
func TestALineWhoseProcessIsKilled(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: 10 * time.Second}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		second := p.acquire(ctx)
		p.net.Dead.Store(true)
		_ = first.Release(t.Context())
		began := time.Now()
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		if took := time.Since(began); took > 13*time.Second || theirs.Token() <= first.Token() {
			t.Errorf("token %d after %d, after %v", theirs.Token(), first.Token(), took)
		}
		p.net.Dead.Store(false)
		rig.Is(t, theirs.Release(t.Context()))
		cancel()
		<-second
		wantNone(t, other.s)
	})
}

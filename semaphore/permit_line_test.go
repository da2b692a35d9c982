package semaphore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Callers of one semaphore stand in line for the permits of a resource.

// A permit goes from caller to caller, in the order in which they came, by one request.
func TestCallersOfOneSemaphoreStandInLine(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour, NamePermits: true}, func(t *testing.T, p, _ *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		var callers []chan granted
		for range 5 {
			callers = append(callers, p.acquire(t.Context()))
		}
		p.lose(nil)
		rig.Is(t, first.Release(t.Context()))
		rig.Is(t, first.Extend(t.Context()), repo.ErrReleased)
		serve(t, first, callers...)
		if n := p.sent.Load(); n != 6 {
			t.Errorf("%d requests for 5 permits, want one for each and one to end", n)
		}
		wantNone(t, p.s)
		rig.Equal(t, p.s.LocalQueues(), 0, "lines of nobody")
	})
}

// While all permits are those of its own process a caller hardly asks; it hears of one
// that is given back, by its limit as many as there are.
func TestPermitsOfOneProcessGoSideBySide(t *testing.T) {
	besideAnother(t, semaphore.Config{Limit: 3, Lease: time.Hour}, func(t *testing.T, p, _ *process) {
		var mu sync.Mutex
		inside, most := 0, 0
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() {
				for range 10 {
					rig.Is(t, p.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error {
						mu.Lock()
						inside++
						most = max(most, inside)
						mu.Unlock()
						time.Sleep(20 * time.Millisecond)
						mu.Lock()
						inside--
						mu.Unlock()
						return nil
					}))
				}
			})
		}
		began := time.Now()
		all.Wait()
		rig.Equal(t, most, 3, "at once, the limit is 3")
		if n := p.sent.Load(); n > 90*3/2 {
			t.Errorf("%d requests for 90 permits", n)
		}
		if took := time.Since(began); took > 30*30*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		wantNone(t, p.s)
	})
}

// A caller behind a permit of its own process that is held for long asks once a second,
// for what an operator does is seen at the table only.
func TestOneAsksForAll(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		held := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		callers := []chan granted{p.acquire(ctx), p.acquire(t.Context()), p.acquire(t.Context())}
		p.lose(nil)
		time.Sleep(20 * time.Second)
		if n := p.sent.Load(); n < 15 || n > 21 {
			t.Errorf("%d requests in 20 s", n)
		}
		cancel() // the next one asks
		got := <-callers[0]
		rig.Is(t, got.err, semaphore.ErrBusy, context.Canceled)
		rig.Is(t, other.s.BreakPermit(t.Context(), "printer", held.ID()))
		began := time.Now()
		second := <-callers[1]
		rig.Is(t, second.err)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		rig.Is(t, held.Release(t.Context()), repo.ErrLockLost)
		rig.Is(t, second.permit.Release(t.Context()))
		serve(t, second.permit, callers[2])
		wantNone(t, p.s)
	})
}

// Whoever waits behind others of its process, and leaves, says that the resource is busy,
// and how, as far as its process knows.
func TestLeavingTheLineOfPermits(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		held := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		for _, after := range []time.Duration{0, 50 * time.Millisecond} { // before the first answer, and after it
			ctx, cancel := context.WithCancel(t.Context())
			first, second := p.acquire(ctx), p.acquire(ctx)
			time.Sleep(after)
			cancel()
			for _, c := range []chan granted{first, second} {
				rig.Is(t, (<-c).err, semaphore.ErrBusy, repo.ErrLocked, context.Canceled)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var busy *semaphore.BusyError
		if got := <-p.acquire(ctx); !errors.As(got.err, &busy) || busy.Running != 1 {
			t.Errorf("%v does not say how the resource is used", got.err)
		}
		rig.Is(t, held.Release(t.Context()))
		wantNone(t, p.s)
	})
}

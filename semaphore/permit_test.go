package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

func TestPermitAndReleaseAreTwoRequests(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	for range 2 { // a new resource, and one that exists
		b.Count.Reset()
		p := rig.Must(s.TryAcquire(t.Context(), "printer"))(t)
		rig.Is(t, p.Release(t.Context()))
		rig.Equal(t, b.Count.Total(), 2, "requests: %v", b.Count.Counts())
		rig.Is(t, p.Release(t.Context())) // for defer
	}
}

func TestNeverMorePermitsThanTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var inside, most atomic.Int32
	var tokens sync.Map
	var done sync.WaitGroup
	for range 8 {
		s := b.open(t, semaphore.Config{Limit: 3})
		done.Go(func() {
			for range 15 {
				err := s.Do(t.Context(), "printer", func(_ context.Context, p *semaphore.Permit) error {
					n := inside.Add(1)
					defer inside.Add(-1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					if _, again := tokens.LoadOrStore(p.Token(), true); again {
						t.Errorf("token %d twice", p.Token())
					}
					return nil
				})
				rig.Is(t, err)
			}
		})
	}
	done.Wait()
	if most.Load() > 3 {
		t.Errorf("%d at once, the limit is 3", most.Load())
	}
	s := b.open(t, semaphore.Config{})
	wantRunning(t, s, "printer", 0)
	b.audit(t)
}

func TestPermitsOfTheDeadAreTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.short(t)
	dying := bench{b.Peer()}
	rig.Is(t, s.SetLimit(t.Context(), "printer", 2))
	var dead []*semaphore.Permit
	for range 2 {
		dead = append(dead, rig.Must(dying.short(t).TryAcquire(t.Context(), "printer"))(t))
	}
	dying.Always(fault.DropRequest)
	_, err := s.TryAcquire(t.Context(), "printer")
	rig.Is(t, err, semaphore.ErrBusy)
	// Both places are taken, so that both leases must have ended: on a busy
	// machine they end apart.
	var taken []*semaphore.Permit
	for range dead {
		p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
		if p.Token() <= dead[1].Token() {
			t.Errorf("token %d after %d", p.Token(), dead[1].Token())
		}
		taken = append(taken, p)
	}
	for _, p := range dead {
		rig.Is(t, rig.Ended(p.Context(), t), repo.ErrLockExpired)
	}
	dying.Faults(nil)
	for _, p := range dead {
		rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
		rig.Is(t, p.Extend(t.Context()), repo.ErrLockLost)
	}
	for _, p := range taken {
		rig.Is(t, p.Release(t.Context()))
	}
	wantRunning(t, s, "printer", 0)
	b.audit(t)
}

// Evidence of an earlier removal outlives the next one: the dead are found one by one.
func TestPermitsOfTheDeadAreTakenOverOneByOne(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.short(t)
	dying := bench{b.Peer()}
	rig.Is(t, s.SetLimit(t.Context(), "printer", 1))
	var dead []*semaphore.Permit
	for range 2 {
		soon := dying.open(t, semaphore.Config{Lease: 1500 * time.Millisecond, ClockSkew: -1})
		p := rig.Must(soon.Acquire(t.Context(), "printer"))(t)
		dying.Always(fault.DropRequest)
		rig.Is(t, rig.Ended(p.Context(), t), repo.ErrLockExpired)
		dying.Faults(nil)
		dead = append(dead, p)
	}
	rig.Is(t, rig.Must(s.Acquire(t.Context(), "printer"))(t).Release(t.Context()))
	for _, p := range dead {
		rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
	}
	wantRunning(t, s, "printer", 0)
	b.audit(t)
}

func TestPermitsRenewThemselves(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.short(t)
	p := rig.Must(s.TryAcquire(t.Context(), "printer"))(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond) // longer than the lease
	defer cancel()
	_, err := s.Acquire(ctx, "printer")
	rig.Is(t, err, semaphore.ErrBusy, repo.ErrLocked, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), "waited for ") {
		t.Errorf("%v does not say for how long it waited", err)
	}
	if p.Context().Err() != nil {
		t.Errorf("the permit ended: %v", context.Cause(p.Context()))
	}
	rig.Is(t, p.Extend(t.Context()))
	rig.Is(t, p.Release(t.Context()))
	rig.Is(t, p.Extend(t.Context()), repo.ErrReleased)
}

func TestLostAnswersOfPermits(t *testing.T) {
	t.Parallel()
	for _, kind := range fault.AllKinds() {
		t.Run(kind.String(), func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, semaphore.Config{})
			var last int64
			for range 2 {
				b.Nth("UpdateItem", 0, kind)
				p := rig.Must(s.TryAcquire(t.Context(), "printer"))(t)
				if p.Token() <= last {
					t.Errorf("token %d after %d", p.Token(), last)
				}
				last = p.Token()
				b.Nth("UpdateItem", 0, kind)
				rig.Is(t, p.Release(t.Context())) // also where the network's own copy found it gone
				b.Faults(nil)
				if kind == fault.LateDuplicate {
					break // a copy may come after the release, and stay for a lease
				}
				wantRunning(t, s, "printer", 0)
			}
			b.audit(t)
		})
	}
}

func TestACancelledWaitLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	held := rig.Must(s.TryAcquire(t.Context(), "printer"))(t)
	sour := errors.New("sour")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := make(chan struct{}, 100)
	b.Count.OnRequest(func(string, []byte) { asked <- struct{}{} })
	result := make(chan error)
	go func() { _, err := s.Acquire(ctx, "printer"); result <- err }()
	<-asked
	<-asked
	cancel(sour)
	rig.Is(t, <-result, sour)
	b.Count.OnRequest(nil)
	rig.Is(t, held.Release(t.Context()))
	wantRunning(t, s, "printer", 0)
	b.audit(t)
}

// A call whose context had ended before it came has found nothing busy.
func TestAContextThatHadEnded(t *testing.T) {
	s := newBench(t).open(t, semaphore.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, take := range map[string]func(context.Context, string) (*semaphore.Permit, error){"Acquire": s.Acquire, "TryAcquire": s.TryAcquire} {
		if _, err := take(ctx, "free"); !errors.Is(err, context.Canceled) || errors.Is(err, semaphore.ErrBusy) || !strings.Contains(err.Error(), `"free"`) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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
			wantResource(t, b.open(t, cfg), "printer", 0, limit, 0)
		})
	}
}

// While as many jobs run as the limit allows, none is started, although more are queued.
func TestRunningJobsUseUpTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, semaphore.Config{Limit: 2})
	enqueue(t, s, "printer", 4)
	last := int64(0)
	for n := range 4 {
		j, err := b.open(t, semaphore.Config{Limit: 2}).Next(t.Context(), "printer")
		if n >= 2 {
			rig.Is(t, err, semaphore.ErrBusy)
			continue
		}
		rig.Is(t, err)
		if j.Token() <= last {
			t.Errorf("token %d after %d", j.Token(), last)
		}
		last = j.Token()
	}
	wantResource(t, s, "printer", 2, 2, 0)
}

// A resource with nothing but dead letters is not forgotten: they would be out of sight.
func TestDeadLettersKeepTheirResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, semaphore.Config{Retry: semaphore.Retry{Attempts: 1}})
	enqueue(t, s, "printer", 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), "printer"))(t).Fail(t.Context(), nil))
	wantResource(t, s, "printer", 0, 0, 1)
	rig.Is(t, s.Forget(t.Context(), "printer"), semaphore.ErrBusy)
	wantResource(t, s, "printer", 0, 0, 1)
}

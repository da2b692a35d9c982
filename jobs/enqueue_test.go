package jobs_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// repeats tells for each state of a job that enqueuing its id again leaves one
// job.
func repeats(t *testing.T, s *queue, id string, again func()) {
	t.Helper()
	again()
	wantResource(t, s, "staging", 1, 0, 0)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if j.ID() != id {
		t.Errorf("job %s, want %s", j.ID(), id)
	}
	again()
	wantResource(t, s, "staging", 0, 1, 0)
	rig.Is(t, j.Return(t.Context()))
	again()
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), errors.New("no disk"))) // moves
	again()
	wantResource(t, s, "staging", 1, 0, 0)
	rig.Is(t, due(t, s, "staging").Fail(t.Context(), nil)) // dies
	again()
	wantResource(t, s, "staging", 0, 0, 1)
	rig.Is(t, s.Requeue(t.Context(), "staging", id))
	again()
	wantResource(t, s, "staging", 1, 0, 0)
	j = rig.Must(s.Next(t.Context(), "staging"))(t)
	rig.Is(t, j.Done(t.Context()))
	again()
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

func TestAnIDIsEnqueuedOnce(t *testing.T) {
	retry := jobs.Retry{Attempts: 2, Min: time.Millisecond}
	job := deploy{"v", 1}
	t.Run("own", func(t *testing.T) {
		b := newBench(t)
		s, other := b.open(t, jobs.Config{Retry: retry}), b.open(t, jobs.Config{})
		id := put(t, s, "staging", job, jobs.WithID("order 7"))
		repeats(t, s, id, func() {
			t.Helper()
			if got := put(t, other, "staging", deploy{"other", 2}, jobs.WithID("order 7")); got != "order 7" {
				t.Errorf("id %q", got)
			}
		})
		put(t, s, "elsewhere", job, jobs.WithID("order 7")) // ids are those of a resource
		s.SetClock(23 * time.Hour)
		put(t, s, "staging", job, jobs.WithID("order 7"))
		wantResource(t, s, "staging", 0, 0, 0)
		s.SetClock(25 * time.Hour) // forgotten, whether or not TTL has removed it
		put(t, s, "staging", job, jobs.WithID("order 7"))
		wantResource(t, s, "staging", 1, 0, 0)
		audit(t, s)
	})
	t.Run("discarded", func(t *testing.T) {
		b := newBench(t)
		s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
		put(t, s, "staging", job, jobs.WithID("order 7"))
		rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
		rig.Is(t, s.Discard(t.Context(), "staging", "order 7"))
		put(t, s, "staging", job, jobs.WithID("order 7"))
		wantResource(t, s, "staging", 0, 0, 0)
		audit(t, s)
	})
	t.Run("made", func(t *testing.T) {
		b := newBench(t)
		s, other := b.open(t, jobs.Config{Retry: retry}), b.open(t, jobs.Config{})
		id := put(t, s, "staging", job)
		repeats(t, s, id, func() { t.Helper(); put(t, other, "staging", job, jobs.WithID(id)) })
		other.SetClock(10 * time.Minute) // the service has forgotten it
		_, err := other.Enqueue(t.Context(), "staging", job, jobs.WithID(id))
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		wantResource(t, s, "staging", 0, 0, 0)
	})
	t.Run("unfit", func(t *testing.T) {
		s := newBench(t).open(t, jobs.Config{})
		for _, id := range []string{"", "\xff", string(make([]byte, 1025))} {
			_, err := s.Enqueue(t.Context(), "staging", job, jobs.WithID(id))
			rig.Is(t, err, repo.ErrKey)
		}
	})
}

// After "unknown" the same id makes one job, whether or not the first call was
// applied.
func TestEnqueueAgainAfterUnknown(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Truncate} {
		for _, own := range []string{"", "order 7"} {
			b := newBench(t)
			s := b.open(t, jobs.Config{})
			var options []jobs.Option
			if own != "" {
				options = append(options, jobs.WithID(own))
			}
			b.Faults(func(op string, _ int, _ []byte) fault.Kind { return kind })
			id, err := s.Enqueue(t.Context(), "staging", deploy{"v", 1}, options...)
			b.Faults(nil)
			rig.Is(t, err, repo.ErrOutcomeUnknown)
			if id == "" || own != "" && id != own {
				t.Fatalf("id %q", id)
			}
			for range 2 {
				if again := put(t, s, "staging", deploy{"v", 1}, jobs.WithID(id)); again != id {
					t.Errorf("id %q, want %q", again, id)
				}
			}
			wantResource(t, s, "staging", 1, 0, 0)
			j := rig.Must(s.Next(t.Context(), "staging"))(t)
			if j.ID() != id {
				t.Errorf("id %q, want %q", j.ID(), id)
			}
			rig.Is(t, j.Done(t.Context()))
			put(t, s, "staging", deploy{"v", 1}, jobs.WithID(id))
			wantResource(t, s, "staging", 0, 0, 0)
			audit(t, s)
		}
	}
}

// What gives something back ends 3 s after its context at the latest, whatever
// is under way beside it and however often it is refused.
func TestEndsOutliveTheirContextsByThreeSeconds(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.DropRequest, fault.Throttle, fault.HoldRequest} {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.both(t, jobs.Config{})
			put(t, s, "staging", deploy{})
			j := rig.Must(s.Next(t.Context(), "staging"))(t)
			p := rig.Must(s.TryAcquire(t.Context(), "printer"))(t)
			b.Always(kind)
			if kind == fault.HoldRequest {
				hung := make(chan struct{})
				defer close(hung)
				go func() {
					for {
						select {
						case h := <-b.Net.Held():
							defer h.Release()
						case <-hung:
							return
						}
					}
				}()
			}
			forever, cancel := context.WithCancel(context.Background())
			defer cancel()
			go func() { _ = p.Extend(forever) }() // others' calls go on for long
			go func() { _ = j.Done(forever) }()
			go func() { _ = p.Release(forever) }()
			var all sync.WaitGroup
			defer all.Wait()
			for what, call := range map[string]func(context.Context) error{
				"Done":    j.Done,
				"Fail":    func(ctx context.Context) error { return j.Fail(ctx, nil) },
				"Release": p.Release,
				"Enqueue": func(ctx context.Context) error { _, err := s.Enqueue(ctx, "staging", deploy{}); return err },
				"Next":    func(ctx context.Context) error { _, err := s.Next(ctx, "staging"); return err },
				"Acquire": func(ctx context.Context) error { _, err := s.Acquire(ctx, "printer"); return err },
				"Discard": func(ctx context.Context) error { return s.Discard(ctx, "staging", "x") },
			} {
				all.Go(func() {
					ended := make(chan error, 1)
					ctx, cancel := context.WithCancel(context.Background())
					go func() { ended <- call(ctx) }()
					cancel()
					start := time.Now()
					select {
					case err := <-ended:
						_ = err // that it ends is all
					case <-time.After(8 * time.Second): // far beyond, for a starved machine
						t.Errorf("%s goes on %v after its context", what, time.Since(start))
					}
				})
			}
		})
	}
}

package jobs_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// Starts are shared by weight while all have work and room, whatever else is queued; none
// waits for more than is said; and what one does not use the others get.
func TestStartsAreSharedByWeight(t *testing.T) {
	t.Parallel()
	const each, workers = 100, 4
	weights := map[string]int{"a": 6, "b": 3, "c": 1}
	inFleet(t, func(t *testing.T, f *fleet) {
		s, _ := f.process(t, jobs.Config{Limit: 1000, Workers: workers, Resources: weights})
		for name := range weights {
			rig.Must(s.EnqueueMany(t.Context(), name, make([]deploy, each)))(t)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		var started []string
		rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
			mu.Lock()
			if started = append(started, j.Resource()); len(started) == each*len(weights) {
				cancel()
			}
			mu.Unlock()
			time.Sleep(20 * time.Millisecond)
			return nil
		}))
		wantShares(t, started[:120], weights)
		since := map[string]int{}
		for i, name := range started[:150] { // all have work
			for other := range weights {
				most := 2*(10-weights[other]) + workers
				if since[other]++; since[other] > most {
					t.Errorf("%s waits for %d others at start %d, at most %d are promised", other, since[other], i, most)
				}
			}
			since[name] = 0
		}
	})
}

// wantShares fails the test unless starts were shared by weight, but for a tenth of all.
func wantShares(t *testing.T, started []string, weights map[string]int) {
	t.Helper()
	sum, got := 0, map[string]int{}
	for _, name := range started {
		got[name]++
	}
	for _, w := range weights {
		sum += w
	}
	for name, w := range weights {
		want := len(started) * w / sum
		if off := got[name] - want; off > len(started)/20 || -off > len(started)/20 {
			t.Errorf("%s had %d of %d starts, want %d", name, got[name], len(started), want)
		}
	}
	t.Logf("%v of %d starts for the weights %v", got, len(started), weights)
}

// A resource that had no work for long comes back with one round of credit, and not with all
// that it has missed.
func TestWhoHadNoWorkDoesNotStarveTheRest(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		s, _ := f.process(t, jobs.Config{Limit: 1000, Workers: 1, Resources: map[string]int{"a": 2, "b": 2}})
		rig.Must(s.EnqueueMany(t.Context(), "a", make([]deploy, 200)))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var started []string
		rig.Is(t, s.Run(ctx, func(ctx context.Context, j *jobs.Job[deploy]) error {
			switch started = append(started, j.Resource()); len(started) {
			case 100:
				_, err := s.EnqueueMany(ctx, "b", make([]deploy, 60))
				return err
			case 160:
				cancel()
			}
			return nil
		}))
		wantShares(t, started[100:160], map[string]int{"a": 1, "b": 1})
	})
}

// A program handles the resources that it names alone: also what others enqueue, what is for
// later, and what failed; of the others it starts none, and sends nothing for their shards.
func TestRunOfNamedResources(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		retry := jobs.Retry{Min: 10 * time.Second, Max: 10 * time.Second}
		s, sent := f.process(t, jobs.Config{Resources: map[string]int{"mail": 1}, Retry: retry})
		producer, _ := f.process(t, jobs.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan string, 100)
		var all sync.WaitGroup
		all.Go(func() {
			rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
				seen <- fmt.Sprint(j.Resource(), " ", j.Value().N, " ", j.Attempt())
				if j.Value().N == 3 && j.Attempt() == 1 {
					return fmt.Errorf("again")
				}
				return nil
			}))
		})
		time.Sleep(time.Minute)
		put(t, s, "other", deploy{N: 1})
		put(t, producer, "other", deploy{N: 1}, jobs.After(time.Second))
		put(t, s, "mail", deploy{N: 1})
		put(t, producer, "mail", deploy{N: 2}, jobs.After(20*time.Second))
		put(t, producer, "mail", deploy{N: 3})
		want := map[string]bool{"mail 1 1": true, "mail 2 1": true, "mail 3 1": true, "mail 3 2": true}
		for range 4 {
			if got := <-seen; !want[got] {
				t.Errorf("handled %s", got)
			} else {
				delete(want, got)
			}
		}
		time.Sleep(5 * time.Minute)
		if len(seen) > 0 {
			t.Errorf("handled %s", <-seen)
		}
		sent.reset()
		time.Sleep(10 * time.Minute)
		if n := sent.of("RESOURCE#"); n > 25 { // of 16 shards one is looked at every 30 s
			t.Errorf("%d looks at shards in ten minutes", n)
		}
		cancel()
		all.Wait()
		wantResource(t, producer, "mail", 0, 0, 0)
		wantResource(t, producer, "other", 2, 0, 0)
		// Who names the other handles it.
		rest, _ := f.process(t, jobs.Config{Resources: map[string]int{"other": 1}})
		ctx, cancel = context.WithCancel(t.Context())
		left := 2
		rig.Is(t, rest.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
			if left--; left == 0 {
				cancel()
			}
			return nil
		}))
		audit(t, producer)
	})
}

func TestWeightsThatMakeNoSense(t *testing.T) {
	b := newBench(t)
	for _, weights := range []map[string]int{{"mail": 0}, {"mail": -1}, {"mail": 1001}} {
		_, err := jobs.New[deploy](b.Client, b.Table, jobs.Config{Resources: weights})
		rig.Is(t, err, repo.ErrConfig)
	}
	_, err := jobs.New[deploy](b.Client, b.Table, jobs.Config{Resources: map[string]int{"": 1}})
	rig.Is(t, err, repo.ErrKey)
}

package jobs_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// runs are the jobs that ticks had, and what is known of each.
type runs struct {
	mu   sync.Mutex
	jobs map[int64]map[string]time.Duration // by tick, and id: how late it was made, by the clock of who did
}

// handle notes the job of a tick.
func (r *runs) handle(_ context.Context, j *jobs.Job[deploy]) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	tick := int64(j.Value().N)
	if r.jobs[tick] == nil {
		r.jobs[tick] = map[string]time.Duration{}
	}
	made, _ := strconv.ParseInt(j.ID()[:15], 16, 64)
	r.jobs[tick][j.ID()] = time.UnixMicro(made).Sub(time.Unix(tick, 0))
	return nil
}

// span are the first and the last tick, how many there were, and the latest.
func (r *runs) span(t *testing.T) (first, last int64, n int, late time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for tick, all := range r.jobs {
		if n++; len(all) != 1 {
			t.Errorf("tick %d has the jobs %v", tick, all)
		}
		if first == 0 || tick < first {
			first = tick
		}
		last = max(last, tick)
		for _, l := range all {
			if late = max(late, l); l < 0 {
				t.Errorf("tick %d was enqueued %v before its time by the clock of who did", tick, -l)
			}
		}
	}
	return first, last, n, late
}

const everyTick = 10 // seconds

// ticking has the schedule of these tests.
func ticking(c jobs.CatchUp) func(*queue) {
	return func(q *queue) {
		q.Periodic("tick", jobs.Every(everyTick*time.Second).CatchUp(c), func(tick time.Time) (string, deploy, error) {
			return "ticks", deploy{N: int(tick.Unix())}, nil
		})
	}
}

// While some process is alive every tick has one job, soon, whatever else fails; when none
// was, ticks are made up for as the schedule says.
func TestTicksInAStorm(t *testing.T) {
	t.Parallel()
	for _, policy := range []jobs.CatchUp{jobs.CatchUpLast, jobs.CatchUpNone, jobs.CatchUpAll} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			inStorm(t, uint64(policy)+1, func(t *testing.T, s *storm) {
				r := &runs{jobs: map[int64]map[string]time.Duration{}}
				start := func() func() { // within ClockSkew of each other
					return s.worker(s.between(-time.Second/2, time.Second/2), jobs.Config{Lease: 5 * time.Second}, ticking(policy), r.handle)
				}
				kills := []func(){start(), start(), start(), start()}
				for range rig.Share(5, 600) {
					time.Sleep(s.between(time.Second, 2*everyTick*time.Second))
					i := s.rng.IntN(len(kills))
					kills[i]()
					kills[i] = start()
				}
				first, last, n, late := r.span(t)
				if int64(n) != (last-first)/everyTick+1 {
					t.Errorf("%d ticks from %d to %d, one in %d s", n, first, last, everyTick)
				}
				t.Logf("%d ticks, the latest after %v", n, late)
				if late >= everyTick*time.Second {
					t.Errorf("a tick came %v late", late)
				}

				for _, kill := range kills {
					kill()
				}
				time.Sleep(10*time.Minute + 5*time.Second)
				kills = []func(){start(), start()}
				time.Sleep(2 * time.Minute)
				for _, kill := range kills {
					kill()
				}
				_, end, all, _ := r.span(t)
				missed := int64(all-n) - (end-last)/everyTick // less than none: so many are missing
				if want := map[jobs.CatchUp][2]int64{jobs.CatchUpLast: {-60, -57}, jobs.CatchUpNone: {-61, -57}, jobs.CatchUpAll: {0, 0}}[policy]; missed < want[0] || missed > want[1] {
					t.Errorf("%d ticks after a pause of ten minutes: %d were left out", all-n, -missed)
				}
			})
		})
	}
}

// Clocks that are further apart than Config.ClockSkew bring ticks early, by as much; no tick
// has two jobs, and where all are to be made up for none is left out.
func TestTicksOfClocksFarApart(t *testing.T) {
	t.Parallel()
	inStorm(t, 11, func(t *testing.T, s *storm) {
		r := &runs{jobs: map[int64]map[string]time.Duration{}}
		ahead := []time.Duration{0, 3 * time.Minute, -time.Hour}
		var kills []func()
		for i := range rig.Share(10, 240) {
			kills = append(kills, s.worker(ahead[i%3], jobs.Config{Lease: 5 * time.Second}, ticking(jobs.CatchUpAll), r.handle))
			time.Sleep(s.between(time.Second, time.Minute))
			if i >= 3 { // there are four of them
				kills[i-3]()
			}
		}
		for _, kill := range kills[len(kills)-3:] {
			kill()
		}
		if first, last, n, _ := r.span(t); int64(n) != (last-first)/everyTick+1 || n < 30 {
			t.Errorf("%d ticks from %d to %d, one in %d s", n, first, last, everyTick)
		}
	})
}

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

func TestSchedules(t *testing.T) {
	for _, spec := range []string{"", "* * *", "61 * * * *", "CRON_TZ=Nowhere 0 0 * * *", "0 0 31 2 *"} {
		_, err := jobs.Cron(spec)
		rig.Is(t, err, repo.ErrConfig)
	}
	b := newBench(t)
	for _, bad := range []jobs.Schedule{jobs.Every(time.Millisecond), jobs.Every(time.Hour).CatchUp(jobs.CatchUpAll + 1), jobs.Every(time.Hour).CatchUp(-1)} {
		s := b.open(t, jobs.Config{})
		s.Periodic("bad", bad, func(time.Time) (string, deploy, error) { return "", deploy{}, nil })
		rig.Is(t, s.Run(t.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }), repo.ErrConfig)
	}
}

// ticks are the ticks that had a job, and how often.
type ticks struct {
	mu   sync.Mutex
	seen map[int64]int
	late time.Duration
}

// periodically runs a process with a schedule, until the end is called.
func (k *ticks) periodically(t *testing.T, s *queue, schedule jobs.Schedule) (end func()) {
	s.Periodic("report", schedule, func(tick time.Time) (string, deploy, error) {
		return "report", deploy{N: int(tick.Unix())}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.seen[int64(j.Value().N)]++
			k.late = max(k.late, time.Since(time.Unix(int64(j.Value().N), 0)))
			return nil
		}))
	})
	return func() { cancel(); all.Wait() }
}

// Each tick has one job over several processes, of which some die at any moment, and lose
// answers; nobody waits for them.
func TestEachTickHasOneJob(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		k := &ticks{seen: map[int64]int{}}
		cron := rig.Must(jobs.Cron("* * * * *"))(t)
		began := time.Now()
		var ends []func()
		for i := range 5 {
			s, sent := f.process(t, jobs.Config{})
			if i > 2 { // nothing of it arrives after some minutes, as of a dead one
				sent.lost = func(string, []byte) bool { return time.Since(began) > time.Duration(i)*time.Minute }
			}
			ends = append(ends, k.periodically(t, s, cron))
		}
		minutes := rig.Share(8, 20)
		time.Sleep(time.Duration(minutes)*time.Minute + 10*time.Second)
		for _, end := range ends {
			end()
		}
		if len(k.seen) != minutes && len(k.seen) != minutes+1 || k.late > poll+100*time.Millisecond {
			t.Errorf("%d ticks in %d minutes, up to %v late", len(k.seen), minutes, k.late)
		}
		for tick, n := range k.seen {
			if n != 1 {
				t.Errorf("tick %d has %d jobs", tick, n)
			}
		}
	})
}

// Ticks that nobody saw are made up for as the schedule says.
func TestMissedTicks(t *testing.T) {
	t.Parallel()
	for catchUp, want := range map[jobs.CatchUp]int{jobs.CatchUpLast: 1, jobs.CatchUpNone: 0, jobs.CatchUpAll: 10} {
		t.Run(fmt.Sprint(catchUp), func(t *testing.T) {
			inFleet(t, func(t *testing.T, f *fleet) {
				k := &ticks{seen: map[int64]int{}}
				schedule := jobs.Every(10 * time.Minute).CatchUp(catchUp)
				s, _ := f.process(t, jobs.Config{})
				end := k.periodically(t, s, schedule)
				time.Sleep(time.Until(time.Now().Truncate(10 * time.Minute).Add(15 * time.Minute)))
				end()
				if len(k.seen) != 1 {
					t.Errorf("ticks %v", k.seen)
				}
				time.Sleep(100 * time.Minute)
				s, _ = f.process(t, jobs.Config{})
				end = k.periodically(t, s, schedule)
				time.Sleep(time.Minute)
				end()
				if len(k.seen) != 1+want {
					t.Errorf("ticks %v, want %d more", k.seen, want)
				}
			})
		})
	}
}

// A Run whose schedule's function does not return ends all the same, and so does another of
// the queue beside it.
func TestAPeriodicFunctionThatHangs(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		q, _ := f.process(t, jobs.Config{})
		called, hangs := make(chan bool, 1), make(chan bool)
		q.Periodic("report", jobs.Every(time.Minute), func(time.Time) (string, deploy, error) {
			called <- true
			<-hangs
			return "report", deploy{}, nil
		})
		_, end := dispatch(t, q)
		<-called
		_, endBeside := dispatch(t, q)
		time.Sleep(time.Second)
		endBeside()
		end()
		close(hangs)
		wantResource(t, q, "report", 0, 0, 0)
	})
}

// Of two schedules under one name that of the process which began last holds, while it is
// there.
func TestAScheduleChanges(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		before, after := &ticks{seen: map[int64]int{}}, &ticks{seen: map[int64]int{}}
		s, _ := f.process(t, jobs.Config{})
		defer before.periodically(t, s, jobs.Every(10*time.Second))()
		time.Sleep(time.Minute)
		s, _ = f.process(t, jobs.Config{})
		end := after.periodically(t, s, jobs.Every(20*time.Second))
		time.Sleep(5 * time.Minute)
		count := func() int {
			before.mu.Lock()
			defer before.mu.Unlock()
			after.mu.Lock()
			defer after.mu.Unlock()
			return len(before.seen) + len(after.seen)
		}
		if n := count(); n < 5+14 || n > 7+17 {
			t.Errorf("%d ticks", n)
		}
		end()
		was := count()
		time.Sleep(5 * time.Minute) // the first one takes over when a tick is late
		if n := count() - was; n < 18 || n > 26 {
			t.Errorf("%d ticks after that", n)
		}
	})
}

// A tick whose value panics while it is written has no job, and the others go on.
func TestAPeriodicValueThatPanics(t *testing.T) {
	b := newBench(t)
	var log logged
	s := rig.Must(jobs.New[explosive](b.Client, b.Table, jobs.Config{Table: log.config()}))(t)
	s.Periodic("report", jobs.Every(time.Second), func(time.Time) (string, explosive, error) { return "report", explosive{5}, nil })
	s.Periodic("sound", jobs.Every(time.Second), func(time.Time) (string, explosive, error) { return "report", explosive{3}, nil })
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[explosive]) error { cancel(); return nil }))
	log.has(t, "enqueueing a periodic job")
}

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// wantLater fails the test unless so many jobs of a resource wait, and of them for their
// time.
func wantLater(t testing.TB, q *queue, name string, queued, later int) {
	t.Helper()
	r := rig.Must(q.Resource(t.Context(), name))(t)
	if r.Queued != queued || r.Later != later {
		t.Errorf("%q: %d queued, %d of them later; want %d and %d", name, r.Queued, r.Later, queued, later)
	}
	audit(t, q)
}

func wantNone(t testing.TB, q *queue, name string) {
	t.Helper()
	if j, err := q.Next(t.Context(), name); !errors.Is(err, jobs.ErrNoWork) {
		t.Fatalf("%v is started: %v", j, err)
	}
}

// A job with a time is not started before it, whatever is started meanwhile, and then in
// the order of times.
func TestAJobWaitsForItsTime(t *testing.T) {
	b := newBench(t)
	s, other := b.open(t, jobs.Config{}), b.open(t, jobs.Config{})
	now := time.Now()
	put(t, s, "mail", deploy{N: 3}, jobs.At(now.Add(2*time.Hour)))
	id := put(t, s, "mail", deploy{N: 2}, jobs.After(time.Hour))
	put(t, s, "mail", deploy{N: 4}, jobs.At(now.Add(3*time.Hour)), jobs.WithID("four"))
	put(t, s, "mail", deploy{N: 1}, jobs.At(now.Add(-time.Hour))) // has come
	put(t, s, "mail", deploy{N: 4}, jobs.After(time.Minute), jobs.WithID("four"))
	if again := put(t, s, "mail", deploy{N: 2}, jobs.WithID(id)); again != id {
		t.Errorf("enqueued again as %s", again)
	}
	wantLater(t, s, "mail", 4, 3)
	for want := 1; want <= 4; want++ {
		for _, q := range []*queue{s, other} {
			q.SetClock(time.Duration(want-1)*time.Hour + time.Minute)
		}
		j := rig.Must(other.Next(t.Context(), "mail"))(t)
		if j.Value().N != want {
			t.Errorf("job %d in hour %d", j.Value().N, want)
		}
		rig.Is(t, j.Done(t.Context()))
		wantNone(t, other, "mail")
		wantNone(t, s, "mail")
	}
	wantLater(t, s, "mail", 0, 0)
	_, err := s.Enqueue(t.Context(), "mail", deploy{}, jobs.At(time.Date(11_000, 1, 1, 0, 0, 0, 0, time.UTC)))
	rig.Is(t, err, repo.ErrConfig)
}

// A job that waits for its time is in the list, is cancelled and gets another time by its
// id, also one of the caller's own.
func TestAJobGetsAnotherTime(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(fmt.Sprintf("own id %v", own), func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, jobs.Config{})
			ids := make([]string, 4)
			for i := range ids {
				options := []jobs.Option{jobs.After(time.Duration(i+1) * time.Hour)}
				if own {
					options = append(options, jobs.WithID(fmt.Sprint("job-", i)))
				}
				ids[i] = put(t, s, "mail", deploy{N: i}, options...)
			}
			put(t, s, "letters", deploy{}, jobs.After(time.Minute)) // of another resource, which may have the same shard
			now := time.Now()
			rig.Is(t, s.Cancel(t.Context(), "mail", ids[0]))
			rig.Is(t, s.Cancel(t.Context(), "mail", ids[0]), repo.ErrNotFound)
			rig.Is(t, s.Reschedule(t.Context(), "mail", ids[1], now.Add(5*time.Hour)))
			rig.Is(t, s.Reschedule(t.Context(), "mail", ids[1], now.Add(6*time.Hour)))
			rig.Is(t, s.Reschedule(t.Context(), "mail", ids[2], now))
			rig.Is(t, s.Reschedule(t.Context(), "mail", "unknown", now), repo.ErrNotFound)
			wantLater(t, s, "mail", 3, 2)
			var listed []string
			for j, err := range s.Jobs(t.Context(), "mail") {
				rig.Is(t, err)
				if j.Enqueued.After(time.Now()) {
					t.Errorf("%s was enqueued at %v", j.ID, j.Enqueued)
				}
				listed = append(listed, fmt.Sprintf("%s in %v", j.ID, max(j.NotBefore.Sub(now).Round(time.Hour), 0)))
			}
			want := []string{ids[2] + " in 0s", ids[3] + " in 4h0m0s", ids[1] + " in 6h0m0s"}
			if fmt.Sprint(listed) != fmt.Sprint(want) {
				t.Errorf("%q, want %q", listed, want)
			}
			j := rig.Must(s.Next(t.Context(), "mail"))(t)
			if j.ID() != ids[2] {
				t.Errorf("%v", j)
			}
			rig.Is(t, s.Reschedule(t.Context(), "mail", ids[2], now), repo.ErrLocked) // it runs
			rig.Is(t, s.Cancel(t.Context(), "mail", ids[2]), repo.ErrLocked)
			rig.Is(t, j.Done(t.Context()))
			s.SetClock(6*time.Hour + time.Second)
			for range 2 {
				rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Done(t.Context()))
			}
			wantNone(t, s, "mail")
			wantLater(t, s, "mail", 0, 0)
			rig.Is(t, s.Forget(t.Context(), "letters"), jobs.ErrBusy) // its job would be lost
			rig.Is(t, s.Cancel(t.Context(), "mail", ids[3]), repo.ErrNotFound)
		})
	}
}

// A job that is started between the read of a Cancel or Reschedule and its write is left to
// its holder; one that has gone elsewhere in line meanwhile is taken from there.
func TestAJobIsStartedBeforeItIsTakenAway(t *testing.T) {
	calls := map[string]func(*queue, context.Context, string) error{
		"Cancel": func(q *queue, ctx context.Context, id string) error { return q.Cancel(ctx, "mail", id) },
		"Reschedule": func(q *queue, ctx context.Context, id string) error {
			return q.Reschedule(ctx, "mail", id, time.Now().Add(time.Hour))
		},
	}
	for name, call := range calls {
		for _, runs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, runs %v", name, runs), func(t *testing.T) {
				b := newBench(t)
				s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Hour, Max: time.Hour}})
				id := put(t, s, "mail", deploy{})
				var j *jobs.Job[deploy]
				client := rig.NewLate(b.Client, "TransactWriteItems", 1, func() {
					if j = rig.Must(s.Next(t.Context(), "mail"))(t); !runs {
						rig.Is(t, j.Fail(t.Context(), errors.New("no address")))
					}
				})
				err := call(rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{}))(t), t.Context(), id)
				switch {
				case runs:
					rig.Is(t, err, repo.ErrLocked)
					wantResource(t, s, "mail", 0, 1, 0)
					rig.Is(t, j.Done(t.Context()))
				default:
					rig.Is(t, err)
				}
				want := 0
				if !runs && name == "Reschedule" {
					want = 1
				}
				wantLater(t, s, "mail", want, want)
			})
		}
	}
}

// What has failed, or was put off, waits elsewhere than in line, with its attempts and its
// error, and can be cancelled and moved there.
func TestFailedAndSnoozedJobsWaitBesideTheLine(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Hour, Max: time.Hour, Attempts: 3}})
	id := put(t, s, "mail", deploy{N: 1})
	j := rig.Must(s.Next(t.Context(), "mail"))(t)
	rig.Is(t, j.Fail(t.Context(), errors.New("no address")))
	wantLater(t, s, "mail", 1, 1)
	wantNone(t, s, "mail")
	rig.Is(t, s.Reschedule(t.Context(), "mail", id, time.Now()))
	for range 5 { // which would be more attempts than there are
		j = rig.Must(s.Next(t.Context(), "mail"))(t)
		if j.Attempt() != 2 || j.ID() != id {
			t.Errorf("%v", j)
		}
		rig.Is(t, j.Snooze(t.Context(), time.Hour))
		rig.Is(t, j.Done(t.Context()), repo.ErrReleased)
		wantLater(t, s, "mail", 1, 1)
		for info, err := range s.Jobs(t.Context(), "mail") {
			rig.Is(t, err)
			if info.Error != "no address" || info.Attempts != 1 {
				t.Errorf("%+v", info)
			}
		}
		rig.Is(t, s.Reschedule(t.Context(), "mail", id, time.Now()))
	}
	j = rig.Must(s.Next(t.Context(), "mail"))(t)
	rig.Is(t, j.Snooze(t.Context(), -time.Second)) // at once
	wantLater(t, s, "mail", 1, 0)
	j = rig.Must(s.Next(t.Context(), "mail"))(t)
	rig.Is(t, j.Fail(t.Context(), errors.New("no address")))
	rig.Is(t, s.Cancel(t.Context(), "mail", id))
	wantLater(t, s, "mail", 0, 0)
}

// Of a Cancel and a start exactly one is applied, and the other is told so.
func TestCancelAndStartRace(t *testing.T) {
	b := newBench(t)
	s, other := b.open(t, jobs.Config{Limit: 100}), b.open(t, jobs.Config{Limit: 100})
	cancelled := 0
	for i := range rig.Share(20, 200) {
		option := jobs.After(0)
		if i%2 == 1 {
			option = jobs.After(12 * time.Millisecond)
		}
		id := put(t, s, "mail", deploy{N: i}, option)
		var started *jobs.Job[deploy]
		var all sync.WaitGroup
		all.Go(func() {
			for {
				j, err := other.Next(t.Context(), "mail")
				if started = j; err == nil {
					return
				}
				if rig.Is(t, err, jobs.ErrNoWork); rig.Must(other.Resource(t.Context(), "mail"))(t).Queued == 0 {
					return
				}
			}
		})
		err := s.Cancel(t.Context(), "mail", id)
		all.Wait()
		switch {
		case err == nil && started != nil:
			t.Fatalf("%v is started, and cancelled", started)
		case err == nil:
			cancelled++
		case started == nil:
			t.Fatalf("it was not started, and not cancelled: %v", err)
		default:
			rig.Is(t, err, repo.ErrLocked)
			rig.Is(t, started.Done(t.Context()))
		}
	}
	t.Logf("%d cancelled", cancelled)
	wantLater(t, s, "mail", 0, 0)
}

// A job of another process is started at its time, by a dispatcher that knew nothing of it,
// and 50 of them send no more for that than a look each.
func TestAJobIsStartedAtItsTime(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		s, sent := f.process(t, jobs.Config{})
		producer, produced := f.process(t, jobs.Config{})
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(2 * time.Minute)
		for _, d := range []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, 29 * time.Second, 31 * time.Second, 5 * time.Minute, rig.Share(10*time.Minute, time.Hour)} {
			put(t, producer, "mail", deploy{}, jobs.After(d))
			time.Sleep(d - time.Millisecond)
			if len(started) > 0 {
				t.Fatalf("started before its %v are over", d)
			}
			startsWithin(t, started, poll+100*time.Millisecond)
		}
		// One that comes before another that is known.
		produced.reset()
		put(t, producer, "mail", deploy{}, jobs.After(20*time.Second))
		put(t, producer, "mail", deploy{}, jobs.After(10*time.Second))
		put(t, producer, "mail", deploy{}, jobs.After(15*time.Second)) // the mark before it stands for it
		if n := produced.of("BELL"); n != 2 {
			t.Errorf("%d marks", n)
		}
		for _, d := range []time.Duration{10 * time.Second, 5 * time.Second, 5 * time.Second} {
			startsWithin(t, started, d+poll+100*time.Millisecond)
		}
		time.Sleep(2 * time.Minute)
		sent.reset()
		time.Sleep(10 * time.Minute)
		if n := sent.of("LATER#"); n != 0 {
			t.Errorf("%d looks for what is due, and nothing is for later", n)
		}
	})
}

// Jobs for tomorrow, and jobs that wait for their retry, cost a dispatcher a look in half a
// minute for their shard, and the jobs of today nothing.
func TestJobsForLaterCostNothing(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		producer, _ := f.process(t, jobs.Config{Retry: jobs.Retry{Min: 2 * time.Hour, Max: 2 * time.Hour}})
		measure := func() (all, looks, lines int) {
			s, sent := f.process(t, jobs.Config{})
			started, end := dispatch(t, s)
			defer end()
			time.Sleep(3 * time.Minute)
			sent.reset()
			for range 40 {
				put(t, producer, "mail", deploy{})
				startsWithin(t, started, poll+100*time.Millisecond)
				time.Sleep(2 * time.Second)
			}
			return sent.of(""), sent.of("LATER#"), sent.of("JOBS#mail")
		}
		before, _, _ := measure()
		for i := range 120 {
			put(t, producer, "mail", deploy{}, jobs.After(24*time.Hour+time.Duration(i)*time.Second))
		}
		for range 30 {
			put(t, producer, "mail", deploy{})
			rig.Is(t, rig.Must(producer.Next(t.Context(), "mail"))(t).Fail(t.Context(), nil))
		}
		after, looks, _ := measure()
		if after-looks > before+before/10 || looks > 8 {
			t.Errorf("%d requests for 40 jobs, %d of them looks for what is due; %d where nothing is for later", after, looks, before)
		}
	})
}

// A mark that is lost, as with its producer, delays a job by a look for all, and no more;
// what is for later does not come early by it.
func TestAMarkOfATimeIsLost(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		s, _ := f.process(t, jobs.Config{})
		producer, produced := f.process(t, jobs.Config{})
		produced.lost = func(op string, body []byte) bool { return op == "UpdateItem" }
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(2 * time.Minute)
		put(t, producer, "mail", deploy{}, jobs.After(time.Second))
		startsWithin(t, started, 15*poll+poll+time.Second)
	})
}

// Many that are due at the same time are all started once, by several processes.
func TestManyAreDueAtOnce(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		producer, _ := f.process(t, jobs.Config{Limit: 1000})
		const count = 150
		at := time.Now().Add(time.Minute)
		for i := range count {
			put(t, producer, fmt.Sprint("mail-", i%3), deploy{N: i}, jobs.At(at))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var mu sync.Mutex
		seen := map[int]int{}
		var all sync.WaitGroup
		for range 5 {
			s, _ := f.process(t, jobs.Config{Limit: 1000})
			all.Go(func() {
				rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
					mu.Lock()
					defer mu.Unlock()
					if seen[j.Value().N]++; time.Now().Before(at) {
						t.Error("started before its time")
					}
					if len(seen) == count {
						cancel()
					}
					return nil
				}))
			})
		}
		all.Wait()
		for n, times := range seen {
			if times != 1 {
				t.Errorf("job %d was started %d times", n, times)
			}
		}
		audit(t, producer)
	})
}

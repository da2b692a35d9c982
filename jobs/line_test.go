package jobs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// The names of the tests carry the rows of the system that the package serves:
// S5 is the multi-value semaphore with a queue of work.

func TestS5_1_ResourcesDoNotWaitForEachOther(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	var all []*jobs.Job[deploy]
	for i := range 40 { // unknown until now, in one table
		name := fmt.Sprintf("env-%d", i)
		enqueue(t, s, name, 2)
		all = append(all, rig.Must(s.Next(t.Context(), name))(t))
	}
	for _, j := range all { // all run at once
		_, err := s.Next(t.Context(), j.Resource())
		rig.Is(t, err, jobs.ErrBusy)
		rig.Is(t, j.Done(t.Context()))
	}
	audit(t, s)
}

func TestS5_2_EnqueueRegistersAndCounts(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 3)
	enqueue(t, s, "prod", 1)
	found := map[string]int{}
	for r, err := range s.Resources(t.Context()) {
		rig.Is(t, err)
		found[r.Name] = r.Queued
	}
	if len(found) != 2 || found["staging"] != 3 || found["prod"] != 1 {
		t.Errorf("resources %v", found)
	}
	audit(t, s)
}

func TestS5_3_OldestFirst(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 25)
	for want := range 25 {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != want || j.Attempt() != 1 {
			t.Errorf("job %d, attempt %d; want %d", j.Value().N, j.Attempt(), want)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrNoWork)
	_, err = s.Next(t.Context(), "unheard-of")
	rig.Is(t, err, jobs.ErrNoWork)
	audit(t, s)
}

func TestS5_4_LimitsThatChangeWhileWorkRuns(t *testing.T) {
	b := newBench(t)
	s := b.both(t, jobs.Config{})
	enqueue(t, s, "staging", 6)
	next := func() *jobs.Job[deploy] { t.Helper(); return rig.Must(s.Next(t.Context(), "staging"))(t) }
	busy := func(running, limit int) {
		t.Helper()
		_, err := s.Next(t.Context(), "staging")
		var e *jobs.BusyError
		if !errors.As(err, &e) || e.Running != running || e.Limit != limit {
			t.Errorf("error %v, want %d of %d", err, running, limit)
		}
	}
	first := next()
	busy(1, 1)
	rig.Is(t, s.SetLimit(t.Context(), "staging", 3))
	second, third := next(), next()
	busy(3, 3)
	rig.Is(t, s.SetLimit(t.Context(), "staging", 1)) // what runs goes on
	busy(3, 1)
	rig.Is(t, first.Done(t.Context()))
	rig.Is(t, second.Done(t.Context()))
	busy(1, 1)
	p, err := s.TryAcquire(t.Context(), "staging") // permits and jobs share the limit
	rig.Is(t, err, jobs.ErrBusy, repo.ErrLocked)
	if p != nil {
		t.Error("a permit beside the error")
	}
	rig.Is(t, third.Done(t.Context()))
	rig.Is(t, next().Done(t.Context()))
	wantResource(t, s, "staging", 2, 0, 0)
	audit(t, s)
}

func TestS5_6_ParametersTravelWithTheWork(t *testing.T) {
	b := newBench(t)
	type params map[string]any
	s := rig.Must(jobs.New[params](b.Client, b.Table, jobs.Config{}))(t)
	put(t, s, "staging", params{"who": "ü\"\x00", "n": 1.5, "deep": []any{true, nil, map[string]any{"a": "b"}}})
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if got := fmt.Sprintf("%q", fmt.Sprint(j.Value())); got != fmt.Sprintf("%q", "map[deep:[true <nil> map[a:b]] n:1.5 who:ü\"\x00]") {
		t.Errorf("value %s", got)
	}
	refuse(t, s, repo.ErrTooLarge, "staging", params{"x": strings.Repeat("x", 500_000)})
	refuse(t, s, repo.ErrSchema, "staging", params{"x": make(chan int)})
	wantTypes := rig.Must(jobs.New[int](b.Client, b.Table, jobs.Config{Retry: jobs.Retry{Attempts: 1}}))(t)
	rig.Is(t, j.Done(t.Context()))
	put(t, s, "staging", params{"not": "a number"})
	put(t, wantTypes, "staging", 7)
	n := rig.Must(wantTypes.Next(t.Context(), "staging"))(t) // passes over what is not its own
	if n.Value() != 7 {
		t.Errorf("value %d", n.Value())
	}
	for _, err := range wantTypes.Dead(t.Context(), "staging") {
		rig.Is(t, err, repo.ErrSchema)
	}
	r, err := wantTypes.Resource(t.Context(), "staging")
	rig.Is(t, err)
	if r.Dead != 1 {
		t.Errorf("%d dead letters", r.Dead)
	}
}

func TestClocksMinutesApart(t *testing.T) {
	b := newBench(t)
	right, ahead := b.both(t, jobs.Config{}), b.both(t, jobs.Config{Table: repo.TableConfig{Clock: func() time.Time { return time.Now().Add(10 * time.Minute) }}})
	enqueue(t, ahead, "staging", 1) // due at once all the same
	j := rig.Must(right.Next(t.Context(), "staging"))(t)
	p := rig.Must(right.TryAcquire(t.Context(), "printer"))(t)
	// More than the allowance: it takes over what is still held. Nothing is
	// lost, and whoever was overtaken finds out.
	taken := rig.Must(ahead.Next(t.Context(), "staging"))(t)
	rig.Is(t, j.Done(t.Context()), repo.ErrLockLost)
	rig.Is(t, taken.Done(t.Context()))
	next := rig.Must(ahead.TryAcquire(t.Context(), "printer"))(t)
	rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
	if next.Token() <= p.Token() || taken.Token() <= j.Token() {
		t.Error("tokens did not grow")
	}
	rig.Is(t, next.Release(t.Context()))
	wantResource(t, right, "staging", 0, 0, 0)
	wantResource(t, right, "printer", 0, 0, 0)
	audit(t, right)
}

// The jobs of a producer whose clock was ahead come into line by the clock that it has since,
// and not behind those of all others until that has caught up.
func TestTheLineBehindAClockThatWasAhead(t *testing.T) {
	b := newBench(t)
	s, other := b.open(t, jobs.Config{Limit: 3}), b.open(t, jobs.Config{})
	s.SetClock(time.Hour)
	put(t, s, "staging", deploy{N: 3})
	s.SetClock(0)
	put(t, s, "staging", deploy{N: 1})
	time.Sleep(time.Millisecond)
	put(t, other, "staging", deploy{N: 2})
	for want := range 3 {
		rig.Equal(t, rig.Must(s.Next(t.Context(), "staging"))(t).Value().N, want+1, "job")
	}
}

func TestMoreRunningJobsThanOnePage(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	const limit = 230 // more rows than one look takes that do not run
	rig.Is(t, s.SetLimit(t.Context(), "staging", limit))
	enqueue(t, s, "staging", limit+1)
	for want := range limit {
		if j := rig.Must(s.Next(t.Context(), "staging"))(t); j.Value().N != want {
			t.Fatalf("job %d, want %d", j.Value().N, want)
		}
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrBusy)
	audit(t, s)
}

func TestLostAnswersOfJobs(t *testing.T) {
	t.Parallel()
	for _, kind := range fault.AllKinds() {
		t.Run(kind.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Millisecond, Max: time.Millisecond}})
			step := func(do func() error) {
				t.Helper()
				b.Nth("TransactWriteItems", 0, kind)
				err := do()
				b.Faults(nil)
				rig.Is(t, err)
				audit(t, s)
			}
			var j *jobs.Job[deploy]
			next := func() (err error) { j, err = s.Next(t.Context(), "staging"); return err }
			step(func() error { _, err := s.Enqueue(t.Context(), "staging", deploy{"v", 1}); return err })
			wantResource(t, s, "staging", 1, 0, 0)
			step(next)
			wantResource(t, s, "staging", 0, 1, 0)
			step(func() error { return j.Return(t.Context()) })
			wantResource(t, s, "staging", 1, 0, 0)
			step(next)
			step(func() error { return j.Fail(t.Context(), nil) })
			wantResource(t, s, "staging", 1, 0, 0)
			j = due(t, s, "staging")
			step(func() error { return j.Done(t.Context()) })
			wantResource(t, s, "staging", 0, 0, 0)
		})
	}
}

// A resource that is used no more can be removed, and only then.
func TestForget(t *testing.T) {
	b := newBench(t)
	s := b.both(t, jobs.Config{})
	listed := func() (n int) {
		for _, err := range s.Resources(t.Context()) {
			rig.Is(t, err)
			n++
		}
		return n
	}
	p := rig.Must(s.Acquire(t.Context(), "order-7"))(t)
	rig.Is(t, s.Forget(t.Context(), "order-7"), jobs.ErrBusy)
	rig.Is(t, p.Release(t.Context()))
	enqueue(t, s, "order-7", 1)
	rig.Is(t, s.Forget(t.Context(), "order-7"), jobs.ErrBusy)
	job := rig.Must(s.Next(t.Context(), "order-7"))(t)
	rig.Is(t, s.Forget(t.Context(), "order-7"), jobs.ErrBusy)
	rig.Is(t, job.Done(t.Context()))
	if n := listed(); n != 1 {
		t.Errorf("%d resources", n)
	}
	rig.Is(t, s.Forget(t.Context(), "order-7"))
	rig.Is(t, s.Forget(t.Context(), "order-7")) // it is gone
	rig.Is(t, s.Forget(t.Context(), ""), repo.ErrKey)
	if n := listed(); n != 0 {
		t.Errorf("%d resources after Forget", n)
	}
	again := rig.Must(s.Acquire(t.Context(), "order-7"))(t)
	if again.Token() <= job.Token() {
		t.Errorf("token %d after %d", again.Token(), job.Token())
	}
}

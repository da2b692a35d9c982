package jobs_test

import (
	"context"
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

func TestS5_5_FailedWorkIsRetriedThenDead(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 3, Min: 20 * time.Millisecond, Max: time.Second}})
	enqueue(t, s, "staging", 2)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	id := j.ID()
	rig.Is(t, j.Fail(t.Context(), errors.New("no disk")))
	other := rig.Must(s.Next(t.Context(), "staging"))(t) // what failed is not due yet
	if other.Value().N != 1 {
		t.Errorf("job %d before its time", other.Value().N)
	}
	rig.Is(t, other.Done(t.Context()))
	for attempt := 2; attempt <= 3; attempt++ {
		j = due(t, s, "staging")
		if j.ID() != id || j.Attempt() != attempt {
			t.Errorf("job %s, attempt %d; want %s, %d", j.ID(), j.Attempt(), id, attempt)
		}
		audit(t, s)
		rig.Is(t, j.Fail(t.Context(), fmt.Errorf("no disk, attempt %d", attempt)))
	}
	wantResource(t, s, "staging", 0, 0, 1)
	audit(t, s)
	for d, err := range s.Dead(t.Context(), "staging") {
		rig.Is(t, err)
		if d.ID != id || d.Value.N != 0 || d.Attempts != 3 || d.Error != "no disk, attempt 3" {
			t.Errorf("dead letter %+v", d)
		}
	}
	rig.Is(t, s.Requeue(t.Context(), "staging", "unknown"), repo.ErrNotFound)
	rig.Is(t, s.Requeue(t.Context(), "staging", id))
	rig.Is(t, s.Requeue(t.Context(), "staging", id), repo.ErrNotFound)
	rig.Is(t, s.Discard(t.Context(), "staging", id), repo.ErrNotFound)
	audit(t, s)
	j = rig.Must(s.Next(t.Context(), "staging"))(t)
	if j.ID() != id || j.Attempt() != 1 {
		t.Errorf("requeued as %s, attempt %d", j.ID(), j.Attempt())
	}
	rig.Is(t, j.Done(t.Context()))
	wantResource(t, s, "staging", 0, 0, 0)
}

// due waits for a job that was failed, or that was its dead holder's.
func due(t testing.TB, s *queue, resource string) *jobs.Job[deploy] {
	t.Helper()
	var j *jobs.Job[deploy]
	rig.Await(t, "a job is due", func() (got bool) {
		var err error
		if j, err = s.Next(t.Context(), resource); err != nil && !errors.Is(err, jobs.ErrNoWork) && !errors.Is(err, jobs.ErrBusy) {
			t.Fatal(err)
		}
		return err == nil
	})
	return j
}

func TestS5_5_WorkOfADeadHolderIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.short(t)
	put(t, s, "staging", deploy{"v", 1})
	// A client of its own, whose renewals never arrive, stands for a dead process.
	dying := bench{b.Peer()}
	dead := rig.Must(dying.short(t).Next(t.Context(), "staging"))(t)
	dying.Always(fault.DropRequest)
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrBusy)
	j := due(t, s, "staging")
	if j.Attempt() != 2 || j.Token() <= dead.Token() || j.ID() != dead.ID() {
		t.Errorf("attempt %d, token %d after %d", j.Attempt(), j.Token(), dead.Token())
	}
	wantResource(t, s, "staging", 0, 1, 0)
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	dying.Faults(nil)
	rig.Is(t, dead.Done(t.Context()), repo.ErrLockLost) // after the takeover
	rig.Is(t, dead.Fail(t.Context(), nil), repo.ErrLockLost)
	rig.Is(t, j.Done(t.Context()))
	rig.Is(t, j.Done(t.Context()), repo.ErrReleased)
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

func TestS5_5_AJobThatKillsItsHoldersDies(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{ClockSkew: -1, Retry: jobs.Retry{Attempts: 1}})
	enqueue(t, s, "staging", 2)
	s.SetClock(-time.Hour) // the lease that it writes is over for all others
	rig.Must(s.Next(t.Context(), "staging"))(t)
	s.SetClock(0)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if j.Value().N != 1 {
		t.Errorf("job %d", j.Value().N)
	}
	wantResource(t, s, "staging", 0, 1, 1)
	audit(t, s)
	for d, err := range s.Dead(t.Context(), "staging") {
		rig.Is(t, err)
		if !strings.Contains(d.Error, "died in attempt 1") {
			t.Errorf("dead letter %+v", d)
		}
		rig.Is(t, s.Discard(t.Context(), "staging", d.ID))
	}
	audit(t, s)
}

func TestReturnDoesNotCountTheAttempt(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 2)
	for range 3 {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != 0 || j.Attempt() != 1 {
			t.Errorf("job %d, attempt %d", j.Value().N, j.Attempt())
		}
		rig.Is(t, j.Return(t.Context()))
		audit(t, s)
	}
	wantResource(t, s, "staging", 2, 0, 0)
}

// A job that is taken over early, by a clock that is too far ahead, is lost, also for one who
// gives it back: its row stays where it was.
func TestAJobThatWasTakenOverEarlyIsLost(t *testing.T) {
	b := newBench(t)
	s, ahead := b.open(t, jobs.Config{}), b.open(t, jobs.Config{})
	ahead.SetClock(time.Hour)
	for what, end := range ends {
		put(t, s, what, deploy{"v", 1})
		early := rig.Must(s.Next(t.Context(), what))(t)
		by := rig.Must(ahead.Next(t.Context(), what))(t)
		rig.Equal(t, by.Attempt(), 2, "the attempt of who took it over")
		rig.Is(t, end(early, t.Context()), repo.ErrLockLost)
		rig.Is(t, by.Done(t.Context()))
	}
	audit(t, s)
}

func TestAFailureDoesNotPutOffWhatComesLater(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Hour}})
	other := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
	put(t, s, "staging", deploy{"first", 1}) // by the process that failed one
	put(t, other, "staging", deploy{"second", 2})
	for want := 1; want <= 2; want++ {
		j := rig.Must(s.Next(t.Context(), "staging"))(t)
		if j.Value().N != want {
			t.Errorf("job %d, want %d", j.Value().N, want)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	_, err := s.Next(t.Context(), "staging")
	rig.Is(t, err, jobs.ErrNoWork) // the failed one is not due for an hour
	wantResource(t, s, "staging", 1, 0, 0)
}

// Of a letter that was requeued and has died again since it was read nobody is told that it is
// not there.
func TestALetterThatDiesAgainMeanwhile(t *testing.T) {
	b := newBench(t)
	cfg := jobs.Config{Retry: jobs.Retry{Attempts: 1}}
	s, other := b.open(t, cfg), bench{b.Peer()}.open(t, cfg)
	id := put(t, s, "staging", deploy{})
	fail := func() {
		rig.Is(t, rig.Must(other.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
	}
	fail()
	for _, call := range []func(context.Context, string, string) error{s.Requeue, s.Discard} {
		quick := false
		b.Faults(func(operation string, _ int, _ []byte) fault.Kind {
			if operation == "TransactWriteItems" && !quick {
				quick = true
				rig.Is(t, other.Requeue(t.Context(), "staging", id))
				fail()
			}
			return fault.None
		})
		rig.Is(t, call(t.Context(), "staging", id), repo.ErrConflict)
		wantResource(t, s, "staging", 0, 0, 1)
	}
	rig.Is(t, s.Discard(t.Context(), "staging", id))
}

package jobs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// wantState fails the test unless a job is in a state; none: the table must know nothing.
func wantState(t testing.TB, s *queue, id string, want jobs.State) jobs.Status {
	t.Helper()
	st, err := s.Status(t.Context(), "mail", id)
	if want == "" {
		rig.Is(t, err, repo.ErrNotFound)
		return st
	}
	rig.Is(t, err)
	if st.State != want || st.ID != id {
		t.Errorf("%+v, want %s", st, want)
	}
	return st
}

// A job is known from its enqueue to the end of its time, however it ends; without Keep
// nothing is known of it when it has gone.
func TestWhatBecameOfAJobIsKept(t *testing.T) {
	failed := errors.New("no address")
	start := func(t *testing.T, s *queue) *jobs.Job[deploy] { return rig.Must(s.Next(t.Context(), "mail"))(t) }
	for _, c := range []struct {
		name string
		end  func(t *testing.T, s *queue, id string)
		want jobs.State
		says string
	}{
		{"Done", func(t *testing.T, s *queue, _ string) {
			j := start(t, s)
			rig.Is(t, j.SetResult("draft"))
			rig.Is(t, j.SetResult("sent"))
			rig.Is(t, j.Done(t.Context()))
		}, jobs.StateDone, "sent"},
		{"Done without a result", func(t *testing.T, s *queue, _ string) { rig.Is(t, start(t, s).Done(t.Context())) }, jobs.StateDone, ""},
		{"DoneIn", func(t *testing.T, s *queue, id string) {
			j := start(t, s)
			rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error {
				return errors.Join(j.DoneIn(tx), j.SetResult("sent"))
			}))
		}, jobs.StateDone, "sent"},
		{"Cancel", func(t *testing.T, s *queue, id string) { rig.Is(t, s.Cancel(t.Context(), "mail", id)) }, jobs.StateCancelled, ""},
		{"In(tx).Cancel", func(t *testing.T, s *queue, id string) {
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return s.In(tx).Cancel(ctx, "mail", id) }))
		}, jobs.StateCancelled, ""},
		{"Discard", func(t *testing.T, s *queue, id string) {
			rig.Is(t, start(t, s).Fail(t.Context(), failed))
			if st := wantState(t, s, id, jobs.StateDead); st.Error != failed.Error() || st.Ended.IsZero() || !st.Until.IsZero() {
				t.Errorf("%+v", st)
			}
			rig.Is(t, s.Discard(t.Context(), "mail", id))
		}, jobs.StateDiscarded, ""},
		{"Requeue and Done", func(t *testing.T, s *queue, id string) {
			rig.Is(t, start(t, s).Fail(t.Context(), failed))
			rig.Is(t, s.Requeue(t.Context(), "mail", id))
			wantState(t, s, id, jobs.StateQueued)
			rig.Is(t, start(t, s).Done(t.Context()))
		}, jobs.StateDone, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
			unkept := put(t, s, "mail", deploy{N: 0}, jobs.WithID("unkept"))
			c.end(t, s, unkept)
			wantState(t, s, unkept, "")
			for _, options := range [][]jobs.Option{{}, {jobs.WithID("mine"), jobs.Unique("key")}} {
				id := put(t, s, "mail", deploy{N: 1}, append(options, jobs.Keep(time.Hour))...)
				wantState(t, s, id, jobs.StateQueued)
				c.end(t, s, id)
				st := wantState(t, s, id, c.want)
				if left := time.Until(st.Until); left < 59*time.Minute || left > time.Hour || time.Since(st.Ended) > rig.Patience {
					t.Errorf("%+v", st)
				}
				var result string
				if err := st.Result(&result); result != c.says || (err == nil) != (c.says != "") {
					t.Errorf("result %q, %v", result, err)
				}
				s.SetClock(time.Hour + time.Second)
				wantState(t, s, id, "")
				s.SetClock(0)
			}
			audit(t, s)
		})
	}
}

// A dispatcher keeps what its handler has left; a reader sees each state meanwhile.
func TestADispatcherKeepsResults(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Keep: time.Minute, Retry: jobs.Retry{Min: time.Millisecond, Max: time.Millisecond}})
	ids := rig.Must(s.EnqueueMany(t.Context(), "mail", []deploy{{N: 1}}))(t)
	later := put(t, s, "mail", deploy{}, jobs.After(time.Hour), jobs.Keep(0))
	if st := wantState(t, s, later, jobs.StateQueued); time.Until(st.NotBefore) < 59*time.Minute {
		t.Errorf("%+v", st)
	}
	ctx, cancel := context.WithCancel(t.Context())
	rig.Is(t, s.Run(ctx, func(ctx context.Context, j *jobs.Job[deploy]) error {
		if st := wantState(t, s, ids[0], jobs.StateRunning); st.Attempts != j.Attempt() {
			t.Errorf("%+v", st)
		}
		if j.Attempt() == 1 {
			rig.Is(t, j.SetResult("too early")) // of an attempt that fails
			return errors.New("busy")
		}
		rig.Is(t, j.SetResult(map[string]int{"sent": 3}))
		cancel()
		return nil
	}))
	st := wantState(t, s, ids[0], jobs.StateDone)
	var result map[string]int
	rig.Is(t, st.Result(&result))
	if result["sent"] != 3 || st.Error != "busy" || st.Attempts != 2 {
		t.Errorf("%+v, %v", st, result)
	}
	rig.Is(t, st.Result(new(int)), repo.ErrSchema)
	rig.Is(t, s.Cancel(t.Context(), "mail", later))
	wantState(t, s, later, "")
}

// What does not fit, or makes no sense, is refused before anything is sent.
func TestResultsThatCannotBeKept(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	_, err := s.Enqueue(t.Context(), "mail", deploy{}, jobs.Keep(-time.Second))
	rig.Is(t, err, repo.ErrConfig)
	_, err = jobs.New[deploy](b.Client, b.Table, jobs.Config{Keep: -1})
	rig.Is(t, err, repo.ErrConfig)
	put(t, s, "mail", deploy{}, jobs.Keep(time.Hour))
	j := rig.Must(s.Next(t.Context(), "mail"))(t)
	rig.Is(t, j.SetResult(make(chan int)), repo.ErrSchema)
	rig.Is(t, j.SetResult([]struct{ n int }{{1}}), repo.ErrSchema)
	rig.Is(t, j.SetResult(strings.Repeat("x", 410_000)), repo.ErrTooLarge)
	rig.Is(t, j.SetResult(strings.Repeat("x", 390_000)))
	rig.Is(t, j.Done(t.Context()))
	wantState(t, s, j.ID(), jobs.StateDone)
}

// Where the first answer to an end is that another transaction was met, which was a copy of it,
// and the row of the resource has gone since, what is kept proves that the end was applied;
// without it nobody can know.
func TestWhatIsKeptProvesTheEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		keep time.Duration
		want error
	}{{"kept", time.Hour, nil}, {"not kept", 0, repo.ErrOutcomeUnknown}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			client, copies := rig.Copied()
			s, other := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{}))(t), b.open(t, jobs.Config{})
			put(t, s, "mail", deploy{}, jobs.Keep(c.keep))
			j := rig.Must(s.Next(t.Context(), "mail"))(t)
			met := false
			copies.On(func(one *fault.Copy) (*http.Response, error) {
				if one.Op != "TransactWriteItems" || met {
					return nil, nil
				}
				met = true
				answer, err := one.Deliver()
				rig.Is(t, err)
				rig.Is(t, answer.Body.Close())
				rig.Is(t, other.Forget(t.Context(), "mail"))
				return one.Met("TransactionConflict", 0), nil
			})
			rig.Is(t, j.Done(t.Context()), c.want)
		})
	}
}

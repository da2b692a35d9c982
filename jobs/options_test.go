package jobs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// Options that make no sense are refused before anything is sent.
func TestOptionsAreChecked(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	for _, o := range []jobs.Option{nil, jobs.Priority(0), jobs.Priority(5), jobs.Attempts(0), jobs.Timeout(0), jobs.Unique("")} {
		_, err := s.Enqueue(t.Context(), "mail", deploy{}, o)
		rig.Is(t, err, repo.ErrConfig)
	}
	for _, o := range []jobs.Option{jobs.WithID("one"), jobs.Unique("one")} {
		_, err := s.EnqueueMany(t.Context(), "mail", []deploy{{}, {}}, o)
		rig.Is(t, err, repo.ErrConfig)
	}
	if n := b.Count.Total(); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// Jobs of a lower number come first, those of one number in their order, also when they
// come back, and their ids find them.
func TestPriority(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Min: time.Hour, Max: time.Hour}})
	ids := map[int]string{}
	for i, level := range []int{4, 2, 3, 1, 2, 1} {
		options := []jobs.Option{jobs.Priority(level)}
		if i >= 4 {
			options = append(options, jobs.After(time.Hour))
		}
		ids[i] = put(t, s, "mail", deploy{N: i}, options...)
		if again := put(t, s, "mail", deploy{N: i}, append(options[1:], jobs.WithID(ids[i]))...); again != ids[i] {
			t.Errorf("enqueued again as %s", again)
		}
	}
	wantLater(t, s, "mail", 6, 2)
	s.SetClock(time.Hour)
	rig.Is(t, s.Reschedule(t.Context(), "mail", ids[4], time.Now())) // at the end of its level
	var places []string
	levels := map[string]int{ids[0]: 4, ids[1]: 2, ids[2]: 3, ids[3]: 1, ids[4]: 2, ids[5]: 1}
	for j, err := range s.Jobs(t.Context(), "mail") {
		rig.Is(t, err)
		if places = append(places, j.ID); j.Priority != levels[j.ID] {
			t.Errorf("%s has the priority %d, want %d", j.ID, j.Priority, levels[j.ID])
		}
	}
	want := []string{ids[3], ids[1], ids[4], ids[2], ids[0], ids[5]} // the last one waits
	if !slices.Equal(places, want) {
		t.Errorf("%q, want %q", places, want)
	}
	for _, i := range []int{0, 3, 5} {
		b.Count.Reset()
		rig.Is(t, s.Cancel(t.Context(), "mail", ids[i]))
		if n := b.Count.Total(); n > 3 {
			t.Errorf("%d requests to cancel %s", n, ids[i])
		}
	}
	for range 3 {
		rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Done(t.Context()))
	}
	wantLater(t, s, "mail", 0, 0)
}

// However many jobs of the first level come, one start in eight is of another, and each
// level has its turn.
func TestNoPriorityStarves(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	for level := 1; level <= 4; level++ {
		for range 12 {
			put(t, s, "mail", deploy{N: level}, jobs.Priority(level))
			if level == 1 {
				for range 3 {
					put(t, s, "mail", deploy{N: 1}, jobs.Priority(1))
				}
			}
		}
	}
	levels := map[int]int{}
	for range 48 {
		j := rig.Must(s.Next(t.Context(), "mail"))(t)
		levels[j.Value().N]++
		rig.Is(t, j.Done(t.Context()))
	}
	if levels[1] != 42 || levels[2] != 2 || levels[3] != 2 || levels[4] != 2 {
		t.Errorf("48 starts by level: %v", levels)
	}
	audit(t, s)
}

// A job's own attempts and time go before those of the program.
func TestAttemptsAndTimeoutOfAJob(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 3}})
	put(t, s, "mail", deploy{}, jobs.Attempts(1))
	rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Fail(t.Context(), nil))
	wantResource(t, s, "mail", 0, 0, 1)
	put(t, s, "mail", deploy{}, jobs.Attempts(7))
	for attempt := range 7 {
		s.SetClock(time.Duration(attempt) * time.Hour)
		j := rig.Must(s.Next(t.Context(), "mail"))(t)
		rig.Is(t, j.Fail(t.Context(), nil))
	}
	wantResource(t, s, "mail", 0, 0, 2)
	put(t, s, "slow", deploy{}, jobs.Timeout(20*time.Millisecond), jobs.Attempts(1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	rig.Is(t, s.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
		<-held.Done()
		cancel()
		return context.Cause(held)
	}))
	for d, err := range s.Dead(t.Context(), "slow") {
		if rig.Is(t, err); !strings.Contains(d.Error, "time is over") {
			t.Errorf("%+v", d)
		}
	}
}

// loseBehindTheFirst loses the answers of all transactions but the next one.
func loseBehindTheFirst(b bench) {
	sent := 0
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "TransactWriteItems" {
			if sent++; sent > 1 {
				return fault.LoseResponse
			}
		}
		return fault.None
	})
}

// Many jobs come in few transactions, in their order, and what was not enqueued is said.
func TestEnqueueMany(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	var all []deploy
	for i := range 200 {
		all = append(all, deploy{N: i})
	}
	ids := rig.Must(s.EnqueueMany(t.Context(), "mail", all))(t)
	if n := b.Count.Total(); n != 3+1 || len(ids) != 200 {
		t.Errorf("%d requests, %d ids", n, len(ids))
	}
	inOrder := func() {
		t.Helper()
		var listed []string
		for j, err := range s.Jobs(t.Context(), "mail") {
			rig.Is(t, err)
			listed = append(listed, j.ID)
		}
		if !slices.Equal(listed, ids) {
			t.Error("the order is another")
		}
	}
	inOrder()
	wantLater(t, s, "mail", 200, 0)
	ids = append(ids, rig.Must(s.EnqueueMany(t.Context(), "mail", all[:100], jobs.At(time.Now().Add(time.Hour)), jobs.Priority(3)))(t)...)
	inOrder()
	wantLater(t, s, "mail", 300, 100)
	if none := rig.Must(s.EnqueueMany(t.Context(), "mail", nil))(t); none != nil {
		t.Errorf("%q", none)
	}

	var sent atomic.Int64
	refused := func(t *testing.T, first int64, verdict repo.Verdict, again bool) {
		t.Helper()
		sent.Store(0)
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "TransactWriteItems" && sent.Add(1) > first {
				return fault.Refuse
			}
			return fault.None
		})
		_, err := s.EnqueueMany(t.Context(), "parcels", all)
		if v := repo.VerdictOf(err); v != verdict || repo.Retryable(err) != again {
			t.Errorf("%d of 3 transactions written: %v, again %v: %v", first, v, repo.Retryable(err), err)
		}
		b.Faults(nil)
	}
	refused(t, 0, repo.NotWritten, true)
	refused(t, 1, repo.Unknown, false) // 90 are there: they would come twice

	loseBehindTheFirst(b)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	ids, err := s.EnqueueMany(ctx, "letters", all)
	var many *jobs.ManyError
	if rig.Is(t, err, repo.ErrOutcomeUnknown); !errors.As(err, &many) || len(many.Unknown) != 90 || many.Unknown[0] != 90 || len(many.Missing) != 20 || many.Missing[0] != 180 {
		t.Fatalf("%+v", many)
	}
	if ids[0] == "" || ids[179] == "" || ids[180] != "" {
		t.Errorf("%q", ids)
	}
	_, err = s.EnqueueMany(ctx, "letters", all, jobs.WithIDs(ids)) // comes no further than before
	if !errors.As(err, &many) || len(many.Unknown) != 180 || len(many.Missing) != 20 {
		t.Errorf("%+v", many)
	}
}

// Jobs whose EnqueueMany is unknown are repeated together: nobody knows of a part of them.
func TestManyJobsAreRepeatedTogether(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	all := []deploy{{N: 0}, {N: 1}, {N: 2}}
	lose := func(resource string, kind fault.Kind) []string {
		defer b.Faults(nil)
		b.Faults(func(string, int, []byte) fault.Kind { return kind })
		ids, err := s.EnqueueMany(t.Context(), resource, all)
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		return ids
	}
	again := func(resource string, want error, all []deploy, ids ...string) {
		t.Helper()
		_, err := s.EnqueueMany(t.Context(), resource, all, jobs.WithIDs(ids))
		rig.Is(t, err, want)
	}
	ids := lose("mail", fault.LoseResponse)
	for range all {
		rig.Is(t, rig.Must(s.Next(t.Context(), "mail"))(t).Done(t.Context()))
	}
	_, err := s.Enqueue(t.Context(), "mail", all[0], jobs.WithID(ids[0]))
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	again("mail", repo.ErrOutcomeUnknown, all[1:], ids[1:]...)
	again("mail", nil, append(all, deploy{N: 3}), append(ids, "")...)
	again("mail", repo.ErrConfig, all, "", "", "own")
	again("mail", repo.ErrConfig, all, ids[0], ids[1], ids[0])
	wantResource(t, s, "mail", 1, 0, 0)

	ids = lose("letters", fault.DropRequest)
	put(t, s, "letters", all[0], jobs.WithID(ids[0]))
	again("letters", repo.ErrOutcomeUnknown, all, ids...)
	wantResource(t, s, "letters", 1, 0, 0)
}

package jobs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// While a version with another limit is rolled out, each goes by its own, and
// nobody is stopped.
func TestProgramsWithDifferentLimits(t *testing.T) {
	b := newBench(t)
	two, three, none := b.both(t, jobs.Config{Limit: 2}), b.both(t, jobs.Config{Limit: 3}), b.both(t, jobs.Config{})
	enqueue(t, two, "staging", 4)
	enqueue(t, three, "staging", 4)
	start := func(s both) *jobs.Job[deploy] { t.Helper(); return rig.Must(s.Next(t.Context(), "staging"))(t) }
	busy := func(s both) {
		t.Helper()
		_, err := s.Next(t.Context(), "staging")
		rig.Is(t, err, jobs.ErrBusy)
		_, err = s.TryAcquire(t.Context(), "staging")
		rig.Is(t, err, jobs.ErrBusy)
	}
	started := []*jobs.Job[deploy]{start(two), start(two)}
	busy(two)
	started = append(started, start(three))
	busy(three)
	busy(two)
	rig.Is(t, started[0].Done(t.Context()))
	busy(two)
	p := rig.Must(three.TryAcquire(t.Context(), "staging"))(t)
	busy(three)
	busy(none) // the row shows the limit that was used last
	rig.Is(t, p.Release(t.Context()))
	started = append(started, start(none))
	rig.Is(t, none.SetLimit(t.Context(), "staging", 1)) // an operator's word is for all
	for _, j := range started[1:] {
		for _, s := range []both{two, three, none} {
			busy(s)
		}
		rig.Is(t, j.Done(t.Context()))
	}
	rig.Is(t, start(three).Done(t.Context()))
	audit(t, two)

	// The same with permits alone: the row learns the limit of who uses it.
	q := rig.Must(two.TryAcquire(t.Context(), "printer"))(t)
	q2 := rig.Must(three.TryAcquire(t.Context(), "printer"))(t)
	q3 := rig.Must(three.TryAcquire(t.Context(), "printer"))(t)
	if r := rig.Must(none.Resource(t.Context(), "printer"))(t); r.Limit != 3 || r.Running != 3 {
		t.Errorf("%+v", r)
	}
	for _, p := range []*semaphore.Permit{q, q2, q3} {
		rig.Is(t, p.Release(t.Context()))
	}
	audit(t, two)
}

func TestNamesThatCollide(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"queued", "running", "limit", "token", "until", "notBefore", "id", "job", "p_x", "swept"} {
		_, err := jobs.New[int](b.Client, b.Table, jobs.Config{Table: repo.TableConfig{Attributes: repo.Attributes{TTL: name}}})
		rig.Is(t, err, repo.ErrConfig)
		if err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q", name)) {
			t.Errorf("error %v does not name %q", err, name)
		}
	}
}

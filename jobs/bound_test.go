package jobs_test

import (
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// While as many jobs run as the limit allows, none is started, although more are queued.
func TestRunningJobsUseUpTheLimit(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{Limit: 2})
	enqueue(t, s, "printer", 4)
	last := int64(0)
	for n := range 4 {
		j, err := b.open(t, jobs.Config{Limit: 2}).Next(t.Context(), "printer")
		if n >= 2 {
			rig.Is(t, err, jobs.ErrBusy)
			continue
		}
		rig.Is(t, err)
		if j.Token() <= last {
			t.Errorf("token %d after %d", j.Token(), last)
		}
		last = j.Token()
	}
	wantResource(t, s, "printer", 2, 2, 0)
}

// A resource with nothing but dead letters is not forgotten: they would be out of sight.
func TestDeadLettersKeepTheirResource(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 1}})
	enqueue(t, s, "printer", 1)
	rig.Is(t, rig.Must(s.Next(t.Context(), "printer"))(t).Fail(t.Context(), nil))
	wantResource(t, s, "printer", 0, 0, 1)
	rig.Is(t, s.Forget(t.Context(), "printer"), jobs.ErrBusy)
	wantResource(t, s, "printer", 0, 0, 1)
}

package jobs_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/semaphore"
)

// A Run whose context has ended with the Close of another semaphore was not closed.
func TestRunUnderThePermitOfAClosedSemaphore(t *testing.T) {
	b := newBench(t)
	other, s := b.both(t, jobs.Config{}), b.both(t, jobs.Config{})
	rig.Is(t, other.SetLimit(t.Context(), "leader", 1))
	permit := rig.Must(other.TryAcquire(t.Context(), "leader"))(t)
	rig.Is(t, other.Close(t.Context()))
	rig.Is(t, context.Cause(permit.Context()), semaphore.ErrClosed)
	rig.Is(t, s.Run(permit.Context(), func(context.Context, *jobs.Job[deploy]) error { return nil }))
}

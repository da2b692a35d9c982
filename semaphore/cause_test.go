package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// That the context of a Release without an answer has ended with a release, or with Close,
// does not say that this permit was given back.
func TestReleaseWithoutAnAnswerIsNoSuccess(t *testing.T) {
	for _, cause := range []error{repo.ErrReleased, semaphore.ErrClosed} {
		t.Run(cause.Error(), func(t *testing.T) {
			b := newBench(t)
			rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
				wire := &rig.Mortal{Next: network}
				client := rig.Client(func(o *dynamodb.Options) { o.HTTPClient = wire })
				s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{Lease: time.Hour}))(t)
				rig.Is(t, s.SetLimit(t.Context(), "r", 1))
				permit := rig.Must(s.TryAcquire(t.Context(), "r"))(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				cancel(cause)
				wire.Dead.Store(true)
				rig.Is(t, permit.Release(ctx), repo.ErrOutcomeUnknown)
				rig.Is(t, permit.Release(permit.Context()), repo.ErrOutcomeUnknown)
				wire.Dead.Store(false)
				rig.Is(t, permit.Release(permit.Context()))
				rig.Is(t, rig.Must(s.TryAcquire(t.Context(), "r"))(t).Release(t.Context()))
				rig.Is(t, s.Close(t.Context()))
			})
		})
	}
}

// Nor does that of a Close.
func TestCloseWithTheContextOfWhatWasReleased(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Lease: time.Hour})
	rig.Is(t, s.SetLimit(t.Context(), "r", 1))
	rig.Must(s.TryAcquire(t.Context(), "r"))(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(repo.ErrReleased)
	rig.Is(t, s.Close(ctx), context.Canceled)
	rig.Is(t, s.Close(t.Context()))
	rig.Is(t, rig.Must(b.open(t, semaphore.Config{}).TryAcquire(t.Context(), "r"))(t).Release(t.Context()))
}

// A Run whose context has ended with the Close of another semaphore was not closed.
func TestRunUnderThePermitOfAClosedSemaphore(t *testing.T) {
	b := newBench(t)
	other, s := b.open(t, semaphore.Config{}), b.open(t, semaphore.Config{})
	rig.Is(t, other.SetLimit(t.Context(), "leader", 1))
	permit := rig.Must(other.TryAcquire(t.Context(), "leader"))(t)
	rig.Is(t, other.Close(t.Context()))
	rig.Is(t, context.Cause(permit.Context()), semaphore.ErrClosed)
	rig.Is(t, s.Run(permit.Context(), func(context.Context, *semaphore.Job[deploy]) error { return nil }))
}

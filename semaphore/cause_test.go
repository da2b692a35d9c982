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
				s := rig.Must(semaphore.New(client, b.Table, semaphore.Config{Lease: time.Hour}))(t)
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

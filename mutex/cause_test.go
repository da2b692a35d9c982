package mutex_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// That the context of a Close has ended with the loss of another lock does not say that
// those of this locker were lost: called again it frees them.
func TestCloseWithTheContextOfALockThatWasLost(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		lock(t, l, "job")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(repo.ErrLockLost)
		err := l.Close(ctx)
		rig.Is(t, err, context.Canceled)
		if errors.Is(err, repo.ErrNotHeld) {
			t.Errorf("%v says that nobody holds it", err)
		}
		rig.Is(t, l.Close(t.Context()))
		_, err = b.locker(t, cfg).Inspect(t.Context(), "job")
		rig.Is(t, err, repo.ErrNotHeld)
	})
}

package mutex_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
)

// TestCloseEndsBesideAnUnlockWithoutAnEnd: it waits for the request of another
// call no longer than its own context lasts.
func TestCloseEndsBesideAnUnlockWithoutAnEnd(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := lock(t, l, "door")
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" || op == "DeleteItem" {
				return fault.HoldRequest
			}
			return fault.None
		})
		unlocked := make(chan error, 1)
		go func() { unlocked <- held.Unlock(context.Background()) }()
		request := <-b.Net.Held()
		b.Faults(nil)
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan error, 1)
		go func() { closed <- l.Close(ctx) }()
		cancel()
		rig.Is(t, <-closed, context.Canceled)
		select {
		case err := <-unlocked:
			t.Errorf("Close waited for the unlock: %v", err)
		default:
		}
		request.Release()
		rig.Is(t, <-unlocked)
	})
}

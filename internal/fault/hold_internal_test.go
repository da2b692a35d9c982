package fault

import (
	"context"
	"errors"
	"testing"
)

// Cancelled and released at once: which of the two is noticed first must not
// decide. Each round is a toss of the runtime, hence many; through Do the two
// would rarely meet.
func TestCancelledHoldIsCancelledThoughReleased(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		i := New(nil, Config{})
		h := newHeld("UpdateItem", 0, nil)
		h.Release()
		ended := make(chan error, 1)
		go func() { ended <- i.hold(ctx, h) }()
		select {
		case <-i.Held():
		case err := <-ended:
			ended <- err
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
	}
}

package fault

import (
	"context"
	"errors"
	"testing"
)

// Cancelled and released at once: which of the two is noticed first must not
// decide, and the test learns of the message all the same. Each round is a toss of
// the runtime, hence many; through Do the two would rarely meet.
func TestCancelledHoldIsCancelledThoughReleased(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		i := New(nil, Config{})
		h := newHeld("UpdateItem", 0, nil)
		h.Release()
		if err := i.hold(ctx, h); !errors.Is(err, context.Canceled) {
			t.Fatalf("error %v", err)
		}
		if got := <-i.Held(); got != h {
			t.Fatalf("held %+v", got)
		}
	}
}

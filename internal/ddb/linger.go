package ddb

import (
	"context"
	"time"
)

// cleanup bounds requests that give back what a call took, once the call's
// context has ended.
const cleanup = 3 * time.Second

// Detached keeps the values of a context but not its end. It is for giving back
// what a call took that has failed: 3 s at most.
func Detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanup)
}

// Lingering is a context that lives 3 s longer than ctx, whether that has ended
// already or ends in the middle: a request that gives something back is worth
// sending although nobody waits for it any more.
func Lingering(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Err() != nil {
		return Detached(ctx)
	}
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		Pause(longer, cleanup)
		cancel()
	})
	return longer, func() { stop(); cancel() }
}

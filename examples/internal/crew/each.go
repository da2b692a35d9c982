package crew

import (
	"context"
	"sync"
)

// Each does something with each of all, so many side by side. The first error ends it: no
// more are begun, and it is returned when those under way are over.
func Each[T any](ctx context.Context, atOnce int, all []T, do func(context.Context, T) error) error {
	queue := make(chan T)
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var running sync.WaitGroup
	for range min(atOnce, len(all)) {
		running.Go(func() {
			for one := range queue {
				if err := do(ctx, one); err != nil {
					fail(err)
				}
			}
		})
	}
	for _, one := range all {
		select {
		case queue <- one:
		case <-ctx.Done():
		}
	}
	close(queue)
	running.Wait()
	return context.Cause(ctx)
}

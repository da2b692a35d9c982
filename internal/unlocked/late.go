package unlocked

import (
	"context"
	"sync"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// beside looks at the item while a write is late, or sleeps because it was throttled, where
// others write: each of eight writes takes a place in the ring, so who waits for long
// is told nothing by the image that refuses it. What a look shows in time is a verdict, and
// ends the write, whose context is the one returned.
func (t *Call) beside(ctx context.Context) (_ context.Context, end func()) {
	every := t.Core.Late()
	if every == 0 {
		return ctx, func() {}
	}
	ctx, told := context.WithCancelCause(ctx)
	over := make(chan struct{})
	late := time.AfterFunc(every, func() {
		defer close(over)
		t.lookUntil(ctx, every, told)
	})
	return ctx, func() {
		if told(nil); !late.Stop() {
			<-over
		}
	}
}

// lookUntil looks at the item until it has told of the write, or ctx ends. The looks may
// be late too, so they do not wait for each other; each one waits twice as long as the one
// before, for a write that never ends must not read for ever.
func (t *Call) lookUntil(ctx context.Context, every time.Duration, told context.CancelCauseFunc) {
	var looks sync.WaitGroup
	defer looks.Wait()
	for ; ctx.Err() == nil; every *= 2 {
		looks.Go(func() {
			if t.Judged(ctx) {
				told(ddb.ErrJudged)
			}
		})
		ddb.Sleep(ctx, every)
	}
}

// Judged looks at the item, and reports whether the write has a verdict then.
func (t *Call) Judged(ctx context.Context) bool {
	t.Core.Read(ctx, t.Raw, ddb.Options{Single: true})
	v, _ := t.Seen()
	return v != protocol.Undecided
}

// Stale reports whether an answer to what was asked then is likely to show the item as it
// is no more: it was late, and others write there.
func (t *Call) Stale(asked time.Time) bool {
	late := t.Core.Late()
	return late > 0 && time.Since(asked) > late && t.Core.IsRaced(t.Raw)
}

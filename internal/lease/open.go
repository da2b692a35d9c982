package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Open is what a client holds, and its calls that may add to it, so that the
// client can be closed.
type Open[H comparable] struct {
	gate   Gate
	why    error
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	held map[H]struct{} // guarded by mu: what is not known to be over
}

// NewOpen is for a client whose calls fail with why once it is closed.
func NewOpen[H comparable](why error) *Open[H] {
	o := &Open[H]{why: why, held: map[H]struct{}{}}
	o.ctx, o.cancel = context.WithCancelCause(context.Background())
	return o
}

// Context ends with Close.
func (o *Open[H]) Context() context.Context { return o.ctx }

// Begin lets a call in that may take something. Its context ends also with Close.
// end follows, unless there is an error.
func (o *Open[H]) Begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if !o.gate.Enter() {
		return nil, nil, o.why
	}
	ctx, cancel := ddb.Merge(ctx, o.ctx)
	return ctx, func() { cancel(); o.gate.Leave() }, nil
}

// Add lists what was taken. It returns why to give it back if Close may not see
// it any more.
func (o *Open[H]) Add(h H) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held[h] = struct{}{}
	if o.gate.Closed() {
		return o.why
	}
	return nil
}

// Remove forgets what is over.
func (o *Open[H]) Remove(h H) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.held, h)
}

// Close ends all calls, waits for them as long as ctx allows, and ends what is
// held then, several at a time. It may be called again.
func (o *Open[H]) Close(ctx context.Context, end func(H) error) error {
	o.gate.Close()
	o.cancel(o.why)
	late := o.gate.Wait(ctx)
	if late != nil {
		late = fmt.Errorf("calls are still under way, which give back what they take: %w", late)
	}
	o.mu.Lock()
	all := slices.Collect(maps.Keys(o.held))
	o.mu.Unlock()
	return errors.Join(append(Each(all, end), late)...)
}

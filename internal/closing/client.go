package closing

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Client is what a client holds, and its calls that may add to it, so that the
// client can be closed.
type Client[H comparable] struct {
	gate   Gate
	why    error
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	held map[H]struct{} // guarded by mu: what is not known to be over
}

// New is for a client whose calls fail with why once it is closed.
func New[H comparable](why error) *Client[H] {
	c := &Client[H]{why: why, held: map[H]struct{}{}}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c
}

// Context ends with Close.
func (c *Client[H]) Context() context.Context { return c.ctx }

// Begin lets a call in that may take something. Its context ends also with Close.
// end follows, unless there is an error.
func (c *Client[H]) Begin(ctx context.Context) (_ context.Context, end func(), err error) {
	if !c.gate.Enter() {
		return nil, nil, c.why
	}
	ctx, cancel := ddb.Merge(ctx, c.ctx)
	return ctx, func() { cancel(); c.gate.Leave() }, nil
}

// Add lists what was taken. It returns why to give it back if Close may not see
// it any more.
func (c *Client[H]) Add(h H) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[h] = struct{}{}
	if c.gate.Closed() {
		return c.why
	}
	return nil
}

// Remove forgets what is over.
func (c *Client[H]) Remove(h H) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.held, h)
}

// Close ends all calls, waits for them as long as ctx allows, and ends what is
// held then, several at a time. It may be called again.
func (c *Client[H]) Close(ctx context.Context, end func(H) error) error {
	c.gate.Close()
	c.cancel(c.why)
	late := c.gate.Wait(ctx)
	if late != nil {
		late = fmt.Errorf("calls are still under way, which give back what they take: %w", late)
	}
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.held))
	c.mu.Unlock()
	return errors.Join(append(Each(all, end), late)...)
}

package cas

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Reentrancy marks the context of a change of one item by one repository: a call for
// the same item from inside the change would wait for it, or make it fail, again
// and again.
type Reentrancy struct {
	By  any // the repository
	Key string
}

// running is the mark of a change. It ends with the change: a context that was
// derived from its own may outlive it.
type running struct{ over atomic.Bool }

// In reports whether ctx is that of such a change, which has not returned yet.
func (w Reentrancy) In(ctx context.Context) bool {
	r, ok := ctx.Value(w).(*running)
	return ok && !r.over.Load()
}

// Refuse is the error of a call from inside such a change; nil if it is not.
func (w Reentrancy) Refuse(ctx context.Context, core *protocol.Core, key repo.Key) error {
	if !w.In(ctx) {
		return nil
	}
	return fmt.Errorf("%s: %w: a change cannot change its own item by another call", core.ItemName(key), repo.ErrLocked)
}

// Mark makes change run with a marked context.
func Mark(w Reentrancy, change func(context.Context, any) error) func(context.Context, any) error {
	return func(ctx context.Context, item any) error {
		r := &running{}
		defer r.over.Store(true)
		return change(context.WithValue(ctx, w, r), item)
	}
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/typed"
)

// hold is a Held of any type.
type hold struct {
	l     *locker
	turn  *local.Turn
	lock  *lock.Lock // the turn's
	raw   ddb.Item   // the key, encoded
	start typed.Snapshot
	fresh bool // there is no item yet
}

// refuse is the error of an end that writes, where it cannot be made.
func (h *hold) refuse(ctx context.Context) error {
	return nesting.End(ctx, h.item(), h.lock.Key())
}

func (h *hold) item() nesting.Item { return nesting.ItemOf(h.l.table.Core.Table, h.raw) }

// release is [Held.Release].
func (h *hold) release(ctx context.Context) error {
	return h.turn.Release(ctx)
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
)

// hold is a Held of any type.
type hold struct {
	l     *locker
	turn  *local.Turn
	lock  *lock.Lock // the turn's
	raw   ddb.Item   // the key, encoded
	start cas.Snapshot
	fresh bool // there is no item yet
}

// refuse is the error of an end that writes, where it cannot be made.
func (h *hold) refuse(ctx context.Context) error {
	return cas.Refuse(ctx, h.l.table, h.lock.Key(), h.raw)
}

// release is [Held.Release].
func (h *hold) release(ctx context.Context) error {
	return h.turn.Release(ctx)
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
)

// hold is a Held of any type.
type hold struct {
	l     *locker
	turn  *local.Turn
	lock  *lock.Lock // the turn's
	start cas.Snapshot
	fresh bool // there is no item yet
}

// release is [Held.Release].
func (h *hold) release(ctx context.Context) error {
	return h.turn.Release(ctx)
}

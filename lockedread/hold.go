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
	start cas.Snapshot
	fresh bool // there is no item yet
}

// release is [Held.Release].
func (h *hold) release(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := h.turn.BeginEnd(ctx); err != nil {
		return err
	}
	defer h.turn.EndDone()
	next, err := h.lock.End(ctx, lock.End{KeepLocal: h.turn.KeepLocal()})
	h.turn.Pass(next, h.start.Raw) // whatever came of it: nobody will try again
	return err
}

package lockedread

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// Commit writes what differs between item and [Held.Item], counts the version,
// and releases the lock, all in one request. It returns the item as written.
// Without a difference it only releases.
//
// ErrLockExpired and ErrLockLost: nothing was written. ErrFixed: the key or
// the version differs; nothing was sent and the hold goes on. ErrReleased: the
// hold is over already.
func (h *Held[T]) Commit(ctx context.Context, item T) (T, error) {
	h.hold.Take()
	defer h.hold.Leave()
	var zero T
	if err := h.hold.Usable(); err != nil {
		return zero, err
	}
	core := h.l.taker.Core
	edit, err := guard.Compare(h.l.table, h.start, item)
	if err == nil {
		err = guard.Overtakes(core, h.start.Raw, edit.After)
	}
	if err != nil {
		return zero, err
	}
	w := core.NewWrite()
	w.Apply(edit.Diff)
	if h.fresh {
		guard.Unhide(core, w, edit.Diff)
	}
	if h.fresh || !edit.Diff.Empty() {
		item = guard.Bump(h.l.table, w, ddb.NewWriteID(), h.start.Raw, item)
	}
	w.Unlock()
	w.Own(h.hold.ID(), h.Token(), h.hold.CommitTime())
	in, err := w.Update(h.hold.Raw())
	if err != nil {
		return zero, repo.Classify(fmt.Errorf("item %v: %w", h.Key(), err))
	}
	if err := h.hold.Commit(ctx, in); err != nil {
		return zero, err
	}
	return item, nil
}

// Delete deletes the item, and the lock with it, in one request. Its evidence,
// if an answer was lost, is that the item which was held is gone before the
// deadline. ErrNotFound if there was no item; the lock is then released.
func (h *Held[T]) Delete(ctx context.Context) error {
	if h.fresh {
		if err := h.Release(ctx); err != nil {
			return err
		}
		return guard.NotFound(h.Key(), h.l.taker.Core.Table)
	}
	h.hold.Take()
	defer h.hold.Leave()
	if err := h.hold.Usable(); err != nil {
		return err
	}
	w := h.l.taker.Core.NewWrite()
	w.Own(h.hold.ID(), h.Token(), h.hold.CommitTime())
	return h.hold.Delete(ctx, w.Delete(h.hold.Raw()))
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Commit writes what differs between item and [Held.Item], counts the version,
// and releases the lock, all in one request. It returns item
// with its new version.
// Without a difference it only releases.
//
// ErrLockExpired and ErrLockLost: nothing was written. ErrFixed: the key or
// the version differs; nothing was sent and the hold goes on. ErrReleased: the
// hold is over already. While another call that ends the hold is under way it
// waits as long as ctx lasts, and returns its error then: nothing was sent.
func (h *Held[T]) Commit(ctx context.Context, item T) (T, error) {
	written, err := h.conclude(ctx, func() (cas.Edit[T], error) { return cas.Compare(h.l.table, h.start, item) }, 0, nil)
	if err != nil {
		return *new(T), err
	}
	return written, nil
}

// conclude commits a difference that stands for so many changes, which may
// cancel each other out; 0: for one, if there is a difference. is, if set, tells
// whether an image shows that it was made. With
// ErrOutcomeUnknown it returns the item as it is if it was written.
func (h *Held[T]) conclude(ctx context.Context, made func() (cas.Edit[T], error), count int64, is func(image ddb.Item) bool) (item T, err error) {
	if err := h.beginEnd(ctx); err != nil {
		return item, err
	}
	defer h.ending.Unlock()
	core, stored := h.l.locker.Core, h.start.Raw
	next := handoff{item: stored} // has no lock if that is not to stay in this process
	end := lock.End{As: lock.Commit, KeepLocal: h.keepLocal(), Made: is}
	end.Change = func(w *protocol.Write) error {
		edit, err := made()
		if err == nil {
			err = cas.CheckNotStale(core, stored, edit.After)
		}
		if err != nil {
			return err
		}
		item = edit.Item
		w.Apply(edit.Diff)
		if h.fresh {
			cas.MakeVisible(core, w, edit.Diff)
		}
		if h.fresh || !edit.Diff.Empty() || count > 0 {
			count := max(count, 1)
			id := protocol.NewWriteID()
			item = cas.Bump(h.l.table, w, id, stored, item, count)
			if end.KeepLocal { // nobody else needs to know
				next.item = cas.ApplyTo(core, stored, edit.Diff, cas.Writers(core, id, stored), count)
			}
		}
		return nil
	}
	next.lock, err = h.lock.End(ctx, end)
	h.passOn(next)
	return item, err
}

// Delete deletes the item, and the lock with it, in one request. Its evidence,
// if an answer was lost, is that the item which was held is gone before the
// deadline. ErrNotFound if there was no item; the lock is then released.
func (h *Held[T]) Delete(ctx context.Context) error {
	if h.fresh {
		if err := h.Release(ctx); err != nil {
			return err
		}
		return lock.NotFound(h.Key(), h.l.locker.Core.Name)
	}
	if err := h.beginEnd(ctx); err != nil {
		return err
	}
	defer h.ending.Unlock()
	_, err := h.lock.End(ctx, lock.End{As: lock.Delete})
	h.passOn(handoff{})
	return err
}

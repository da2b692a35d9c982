package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/cas"
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
	written, err := h.conclude(ctx, func() (cas.Edit[T], error) { return cas.Compare(h.l.table, h.start, item) }, 0)
	if err != nil {
		return *new(T), err
	}
	return written, nil
}

// conclude commits a difference that stands for so many changes, which may
// cancel each other out; 0: for one, if there is a difference. With
// ErrOutcomeUnknown it returns the item as it is if it was written.
func (h *Held[T]) conclude(ctx context.Context, edit func() (cas.Edit[T], error), count int64) (item T, err error) {
	if err := h.end(ctx); err != nil {
		return item, err
	}
	defer h.ending.Unlock()
	item, next, err := h.commit(ctx, edit, count)
	h.passOn(next)
	return item, err
}

// commit sends the commit. The handoff that it returns is for the next caller of
// this process; it has no lock if that is not to stay here.
func (h *Held[T]) commit(ctx context.Context, made func() (cas.Edit[T], error), count int64) (written T, next handoff, err error) {
	if err := h.hold.BeginLast(ctx); err != nil {
		return written, next, err
	}
	defer h.hold.Done()
	if err := h.hold.Usable(); err != nil {
		return written, next, err
	}
	core := h.l.locker.Core
	edit, err := made()
	item := edit.Item
	if err == nil {
		err = cas.CheckNotStale(core, h.start.Raw, edit.After)
	}
	if err != nil {
		return written, next, err
	}
	pass := h.keepLocal()
	next.item = h.start.Raw
	next.hold, err = h.hold.Commit(ctx, func(w *protocol.Write) {
		w.Apply(edit.Diff)
		if h.fresh {
			cas.MakeVisible(core, w, edit.Diff)
		}
		if h.fresh || !edit.Diff.Empty() || count > 0 {
			count := max(count, 1)
			id := protocol.NewWriteID()
			item = cas.Bump(h.l.table, w, id, h.start.Raw, item, count)
			if pass { // nobody else needs to know
				next.item = cas.ApplyTo(core, h.start.Raw, edit.Diff, cas.Writers(core, id, h.start.Raw), count)
			}
		}
	}, pass)
	return item, next, err
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
	if err := h.end(ctx); err != nil {
		return err
	}
	defer h.ending.Unlock()
	err := h.delete(ctx)
	h.passOn(handoff{})
	return err
}

func (h *Held[T]) delete(ctx context.Context) error {
	if err := h.hold.BeginLast(ctx); err != nil {
		return err
	}
	defer h.hold.Done()
	if err := h.hold.Usable(); err != nil {
		return err
	}
	return h.hold.Delete(ctx)
}

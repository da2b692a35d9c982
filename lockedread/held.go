package lockedread

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Held is a lock on an item, and the item as it was when the lock was taken.
// It is safe for concurrent use; it ends with Commit, Delete, Release, or its
// loss.
type Held[T any] struct{ h *hold }

func heldOf[T any](h *hold, err error) (*Held[T], error) {
	if err != nil {
		return nil, err
	}
	return &Held[T]{h}, nil
}

// Item is the item as it was when the lock was taken. For a key without an
// item it has nothing but its key.
func (h *Held[T]) Item() T { return *h.h.start.Item.(*T) }

// Exists reports whether there was an item when the lock was taken.
func (h *Held[T]) Exists() bool { return !h.h.fresh }

// Key is the item's key.
func (h *Held[T]) Key() repo.Key { return h.h.lock.Key() }

// Token is the fencing token: it grows with every acquisition of the item. An
// outside resource that is to be protected must refuse smaller ones.
func (h *Held[T]) Token() int64 { return h.h.lock.Token() }

// Until is when the holder must stop, on its own clock: the end of the lease,
// counted from when the request was first sent, less a margin of a tenth of
// the lease, at most 1 s.
func (h *Held[T]) Until() time.Time { return h.h.lock.Until() }

// Context is cancelled when the hold ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased. With it other writes of the item are ErrNested: they
// would wait for the hold.
func (h *Held[T]) Context() context.Context {
	return nesting.Holding(h.h.lock.Context(), h.h.item(), "", h.h.lock.Cause)
}

// Extend moves the end of the lease to a full lease from now. One request;
// ErrLockExpired, ErrLockLost or ErrReleased when it is too late. It gives way to
// a Commit, Delete or Release that comes while it is under way, also with
// ErrReleased.
func (h *Held[T]) Extend(ctx context.Context) error { return h.h.lock.Extend(ctx) }

// Release gives the lock back without a change. It is harmless after Commit or
// Delete, for use with defer, and works although ctx is done: it then has 3 s
// of its own. ErrLockLost if somebody else ended the hold, with ErrOutcomeUnknown
// where that may have come behind this call. One request.
//
// If a caller of this process waits for the item, the request passes the lock
// on to it.
func (h *Held[T]) Release(ctx context.Context) error { return h.h.release(ctx) }

// Commit writes what differs between item and [Held.Item], counts the version,
// and releases the lock, all in one request. It returns item
// with its new version.
// Without a difference it only releases.
//
// ErrLockExpired and ErrLockLost: nothing was written. ErrFixed: the key or
// the version differs; nothing was sent and the hold goes on. ErrReleased: the
// hold is over already. While another call that ends the hold is under way it
// waits as long as ctx lasts, and returns its error then: nothing was sent.
func (h *Held[T]) Commit(ctx context.Context, item T) (_ T, err error) {
	ctx, told := h.h.l.line.Core.Observe.Call(ctx, telemetry.Pessimistic, "Commit", h.Key().String)
	defer told.End(&err)
	if err := h.h.refuse(ctx); err != nil {
		return *new(T), err
	}
	edit := func() (typed.Edit, error) { return typed.Compare(h.h.l.table, h.h.start, &item) }
	written, err := h.h.conclude(ctx, edit, 0, nil)
	if err != nil {
		return *new(T), err
	}
	return typed.As[T](written, nil)
}

// Delete deletes the item, and the lock with it, in one request. Its evidence,
// if an answer was lost, is that the item which was held is gone before the
// deadline. ErrNotFound if there was no item; the lock is then released.
func (h *Held[T]) Delete(ctx context.Context) (err error) {
	ctx, told := h.h.l.line.Core.Observe.Call(ctx, telemetry.Pessimistic, "Delete", h.Key().String)
	defer told.End(&err)
	if err := h.h.refuse(ctx); err != nil {
		return err
	}
	return h.h.delete(ctx)
}

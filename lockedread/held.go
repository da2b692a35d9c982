package lockedread

import (
	"context"
	"time"

	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/repo"
)

// Held is a lock on an item, and the item as it was when the lock was taken.
// It is safe for concurrent use; it ends with Commit, Delete, Release, or its
// loss.
type Held[T any] struct {
	l     *Locker[T]
	hold  *hold.Hold
	start guard.Start[T]
	fresh bool // there is no item yet
}

// Item is the item as it was when the lock was taken. For a key without an
// item it has nothing but its key.
func (h *Held[T]) Item() T { return h.start.Item }

// Exists reports whether there was an item when the lock was taken.
func (h *Held[T]) Exists() bool { return !h.fresh }

// Key is the item's key.
func (h *Held[T]) Key() repo.Key { return h.hold.Key() }

// Token is the fencing token: it grows with every acquisition of the item. An
// outside resource that is to be protected must refuse smaller ones.
func (h *Held[T]) Token() int64 { return h.hold.Token() }

// Until is when the holder must stop, on its own clock: the end of the lease,
// counted from when the request was first sent, less a margin of a tenth of
// the lease, at most 1 s.
func (h *Held[T]) Until() time.Time { return h.hold.Until() }

// Context is cancelled when the hold ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased.
func (h *Held[T]) Context() context.Context { return h.hold.Context() }

// Extend moves the end of the lease to a full lease from now. One request;
// ErrLockExpired, ErrLockLost or ErrReleased when it is too late.
func (h *Held[T]) Extend(ctx context.Context) error { return h.hold.Extend(ctx) }

// Release gives the lock back without a change. It is harmless after Commit or
// Delete, for use with defer, and works although ctx is done: it then has 3 s
// of its own. ErrLockLost if somebody else ended the hold. One request.
func (h *Held[T]) Release(ctx context.Context) error { return h.hold.Release(ctx, hold.Releasing{}) }

package lockedread

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/repo"
)

// Held is a lock on an item, and the item as it was when the lock was taken.
// It is safe for concurrent use; it ends with Commit, Delete, Release, or its
// loss.
type Held[T any] struct {
	l     *Locker[T]
	lock  *lock.Lock
	start cas.Snapshot[T]
	fresh bool // there is no item yet

	waiter *waiter[T] // its turn goes on when the hold ends; nil for who stands in no queue
	streak streak

	// ending is held from before the request that ends the hold until the turn
	// is passed on: whoever comes second must not pass on nothing before the first
	// passes on the lock.
	ending lease.Exclusive
	passed bool // guarded by ending: the turn
}

// Item is the item as it was when the lock was taken. For a key without an
// item it has nothing but its key.
func (h *Held[T]) Item() T { return h.start.Item }

// Exists reports whether there was an item when the lock was taken.
func (h *Held[T]) Exists() bool { return !h.fresh }

// Key is the item's key.
func (h *Held[T]) Key() repo.Key { return h.lock.Key() }

// Token is the fencing token: it grows with every acquisition of the item. An
// outside resource that is to be protected must refuse smaller ones.
func (h *Held[T]) Token() int64 { return h.lock.Token() }

// Until is when the holder must stop, on its own clock: the end of the lease,
// counted from when the request was first sent, less a margin of a tenth of
// the lease, at most 1 s.
func (h *Held[T]) Until() time.Time { return h.lock.Until() }

// Context is cancelled when the hold ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased.
func (h *Held[T]) Context() context.Context { return h.lock.Context() }

// Extend moves the end of the lease to a full lease from now. One request;
// ErrLockExpired, ErrLockLost or ErrReleased when it is too late. It gives way to
// a Commit, Delete or Release that comes while it is under way, also with
// ErrReleased.
func (h *Held[T]) Extend(ctx context.Context) error { return h.lock.Extend(ctx) }

// Release gives the lock back without a change. It is harmless after Commit or
// Delete, for use with defer, and works although ctx is done: it then has 3 s
// of its own. ErrLockLost if somebody else ended the hold. One request.
//
// If a caller of this process waits for the item, the request passes the lock
// on to it.
func (h *Held[T]) Release(ctx context.Context) error {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	if err := h.beginEnd(ctx); err != nil {
		return err
	}
	defer h.ending.Unlock()
	next, err := h.lock.End(ctx, lock.End{KeepLocal: h.keepLocal()})
	h.passTurn(handoff{lock: next, item: h.start.Raw}) // whatever came of it: nobody will try again
	return err
}

// beginEnd waits for another call that ends the hold, as long as ctx lasts.
func (h *Held[T]) beginEnd(ctx context.Context) error {
	if err := h.ending.Lock(ctx); err != nil {
		return fmt.Errorf("item %v, token %d: nothing was sent: %w", h.Key(), h.Token(), err)
	}
	return nil
}

// keepLocal reports whether the lock should stay in this process.
func (h *Held[T]) keepLocal() bool {
	return h.waiter != nil && h.waiter.Waiting() > 0 && h.streak.more(h.l.locker.Lease)
}

// passOn passes the turn on if the hold is over. The caller holds ending.
func (h *Held[T]) passOn(next handoff) {
	if h.lock.Over() {
		h.passTurn(next)
	}
}

// passTurn passes the turn on: with the lock of the next one, if it was kept, and
// the item as it is now. The caller holds ending.
func (h *Held[T]) passTurn(next handoff) {
	if h.waiter == nil || h.passed {
		return
	}
	h.passed = true
	next.orphan = h.lock.Orphan()
	next.streak = h.streak
	next.streak.handoffs++
	pass(h.waiter, next)
}

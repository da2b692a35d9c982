package lockedread

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/lock"
)

// hold is a Held of any type.
type hold struct {
	l     *locker
	lock  *lock.Lock
	start cas.Snapshot
	fresh bool // there is no item yet

	waiter *waiter // its turn goes on when the hold ends; nil for who stands in no queue
	streak streak

	// ending is held from before the request that ends the hold until the turn
	// is passed on: whoever comes second must not pass on nothing before the first
	// passes on the lock.
	ending lease.Exclusive
	passed bool // guarded by ending: the turn
}

// release is [Held.Release].
func (h *hold) release(ctx context.Context) error {
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
func (h *hold) beginEnd(ctx context.Context) error {
	if err := h.ending.Lock(ctx); err != nil {
		return fmt.Errorf("%s, token %d: nothing was sent: %w", h.l.locker.Core.ItemName(h.lock.Key()), h.lock.Token(), err)
	}
	return nil
}

// keepLocal reports whether the lock should stay in this process.
func (h *hold) keepLocal() bool {
	return h.waiter != nil && h.waiter.Waiting() > 0 && h.streak.more(h.l.locker.Lease)
}

// passOn passes the turn on if the hold is over. The caller holds ending.
func (h *hold) passOn(next handoff) {
	if h.lock.Over() {
		h.passTurn(next)
	}
}

// passTurn passes the turn on: with the lock of the next one, if it was kept, and
// the item as it is now. The caller holds ending.
func (h *hold) passTurn(next handoff) {
	if h.waiter == nil || h.passed {
		return
	}
	h.passed = true
	next.orphan = h.lock.Orphan()
	next.streak = h.streak
	next.streak.handoffs++
	pass(h.waiter, next)
}

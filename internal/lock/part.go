package lock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Part is the end of a lock inside a transaction over several items, which ends
// other locks too. Its owner is between BeginLast and Done.
type Part struct {
	lock *Lock
	now  time.Time  // that the lease must not have passed; zero: it may have
	next *successor // that the lock is kept for; nil: it leaves the process
}

// Part begins the end of the lock inside a transaction; keepLocal keeps it for the next
// one of this process, unless the item is deleted. The caller holds op.
func (h *Lock) Part(keepLocal bool) *Part {
	p := &Part{lock: h, now: h.CommitTime()}
	if keepLocal {
		p.next = h.newSuccessor()
	}
	return p
}

// Timeout bounds an attempt of a request that ends the lock.
func (h *Lock) Timeout() time.Duration { return h.locker.Lease / 3 }

// Own adds the holder's condition to the transaction's write of the item.
func (p *Part) Own(w *protocol.Write) { w.Own(p.lock.id, p.lock.token, p.now) }

// Leave adds the end of the lock to it: it stays in this process, or goes to whoever
// has waited longest, or becomes free. A delete needs none.
func (p *Part) Leave(w *protocol.Write) {
	switch {
	case p.next != nil:
		p.next.takeOver(w)
	case p.lock.locker.Fair:
		p.lock.leaveToQueue(w)
	default:
		w.Unlock()
	}
}

// Holder is what the lock knows of itself.
func (p *Part) Holder() *protocol.Holder {
	h := p.lock.holder()
	return &h
}

// Valid reports whether the deadline has not passed.
func (p *Part) Valid() bool { return !p.lock.Expired() }

// RefusedByQueue reports whether it was the queue that refused the write, which is
// final for it: another may be sent, to what the queue is now.
func (p *Part) RefusedByQueue(image ddb.Item) bool {
	return p.lock.locker.Fair && p.lock.queueChanged(image, p.now)
}

// Stands reports whether an image shows the lock in place, so that it is not why the
// write was refused.
func (p *Part) Stands(image ddb.Item) bool {
	l, err := p.lock.locker.Core.ParseRecord(image)
	return err == nil && l.By == p.lock.id && l.Held == p.lock.token && (p.now.IsZero() || l.Until.After(p.now))
}

// Lost ends the lock because the write was refused by an image, and nothing was
// written. It returns why, nil where the image does not speak against the lock.
func (p *Part) Lost(image ddb.Item) error {
	return p.lock.judge(ddb.Result{Outcome: ddb.Condition, Image: image, Clean: true})
}

// Ended notes that the transaction was applied. It returns the next one's lock, if it
// was kept.
func (p *Part) Ended(ctx context.Context) (next *Lock) {
	p.lock.Finish(repo.ErrReleased)
	if p.next == nil {
		return nil
	}
	return p.next.adopt(ctx, false)
}

// InDoubt notes that nobody knows whether the transaction was applied: the release
// after it may tell (OutcomeOfUndecided). deletes says that the item was to go.
func (p *Part) InDoubt(deletes bool, trace Trace) {
	p.lock.doubt(deletes, trace)
	if p.next != nil {
		p.next.doubt()
	}
}

// Require demands of a transaction that the lock, which is all of its row, is still
// held.
func (h *Lock) Require(tx repo.Tx) error {
	if h == nil {
		return hold.ErrUnmade
	}
	return hold.Require(tx, hold.Held{
		Table: h.locker.Core.Table,
		Key:   h.key,
		Raw:   h.raw(),
		Lease: h.Lease,
		Own:   func(w *ddb.Write) { h.locker.Core.Own(w, h.id, h.token, time.Time{}) },
		Lost:  h.refuted,
	})
}

// refuted ends the lock because a transaction that requires it, without ending it,
// was refused by an image. It returns why.
func (h *Lock) refuted(ctx context.Context, image ddb.Item) error {
	if err := h.Lease.BeginLast(ctx); err != nil {
		return h.Describe(fmt.Errorf("%w: %w", repo.ErrLockLost, err))
	}
	defer h.Done()
	if err := h.Usable(); err != nil {
		return err
	}
	err := h.lostRenewal(ddb.Result{Outcome: ddb.Condition, Image: image, Clean: true})
	if errors.Is(err, repo.ErrLockLost) {
		return h.Lose() // what was written the transaction says
	}
	return err
}

package lockedread

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// How long a lock may stay in one process while callers there wait for it: then
// it is let go, so that other processes get their turn. While others are known
// to wait, four: sixteen gave a little more throughput, and half as much again
// to their longest waits.
const (
	handoffsAlone     = 32
	handoffsContended = 4
	streakOfLease     = 10 // a streak lasts at most this part of a lease
)

// handoff is what the caller that has the turn on an item passes on.
type handoff struct {
	lock   *lock.Lock // nil: it is to be taken, and the streak begins anew
	item   ddb.Item   // as stored under the lock
	streak streak
	orphan *lock.Orphan    // what a write without a verdict may have left
	holder protocol.Record // whom the caller waits for, while it has no lock
}

// streak counts how long the lock has been in this process.
type streak struct {
	handoffs  int
	since     time.Time
	contended bool // other processes wanted the item when the lock was taken
}

// more reports whether the lock may be passed on once more.
func (c streak) more(lease time.Duration) bool {
	limit := handoffsAlone
	if c.contended {
		limit = handoffsContended
	}
	return c.handoffs < limit && (lease == 0 || time.Since(c.since) < lease/streakOfLease)
}

// waiter is a caller's place in the queue of its item; nil for one that does not
// wait in one.
type waiter = local.Waiter[*local.Participant, handoff]

// join takes a place; part, where set, can be taken along by others.
func (l *locker) join(raw ddb.Item, part *local.Participant) *waiter {
	return l.queues.Join(l.locker.Core.KeyText(raw), part)
}

// enqueue waits for the turn on an item, as long as the lock of one of this
// process can last.
func (l *locker) enqueue(ctx context.Context, key repo.Key, p *waiter) (local.State, error) {
	began := time.Now()
	state, err := p.Wait(ctx, l.locker.Lease+l.locker.Skew)
	if p.Stood() {
		l.locker.Core.Observe.Waited(ctx, telemetry.Pessimistic, telemetry.ToCaller, time.Since(began))
	}
	if err == nil && ctx.Err() != nil && state == local.Holding {
		pass(p, p.Handoff())
		err = ctx.Err()
	}
	if err != nil && !p.Stood() {
		return state, ddb.CtxError(ctx) // it waited for nobody
	}
	if err != nil {
		return state, ddb.Join(locked(l.locker.Core, key, p.Seen()), ddb.Waited(time.Since(began), ddb.CtxError(ctx)))
	}
	return state, nil
}

// pass passes the turn on; what nobody takes is cleared away.
func pass(p *waiter, g handoff) {
	if p.Pass(g) {
		return
	}
	if g.lock != nil { // nobody is waiting any more
		release(g.lock)
	}
	if g.orphan != nil {
		g.orphan.Release()
	}
}

// release releases a lock that nobody wants. It takes 3 s at most, less than a
// caller of a group waits for its verdict. That it fails is no news: the lock
// ends with its lease.
func release(h *lock.Lock) {
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	_, _ = h.End(ctx, lock.End{NoGrace: true})
}

// holder is who keeps a caller from the item; nil if nobody does.
func holder(core *protocol.Core, key repo.Key, p *waiter) error {
	if p.Behind() {
		return locked(core, key, p.Seen())
	}
	if by := p.Handoff().holder; by.Busy() {
		return lock.Locked(core, key, by)
	}
	return nil // its own hold is no lock of another
}

// locked is the error of a caller that waited in the queue of its process: who holds the item.
func locked(core *protocol.Core, key repo.Key, g handoff) error {
	if g.lock != nil {
		return g.lock.Locked()
	}
	if !g.holder.Busy() { // the one in front is on its way to the item
		return fmt.Errorf("%s: %w: a caller of this process is before this one", core.ItemName(key), repo.ErrLocked)
	}
	return lock.Locked(core, key, g.holder)
}

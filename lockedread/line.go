package lockedread

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// How long a lock may stay in one process while callers there wait for it: then
// it is let go, so that other processes get their turn. While others are known
// to wait, four: sixteen gave a little more throughput, and half as much again
// to their longest waits.
const (
	linksAlone   = 32
	linksRivals  = 4
	chainOfLease = 10 // a chain lasts at most this part of a lease
)

// grip is what the caller that has the baton of an item hands on.
type grip struct {
	hold  *lock.Lock // the lock; nil: it is to be taken, and the chain begins anew
	item  ddb.Item   // as stored under the lock
	chain chain
	ghost *lock.Ghost     // what a write without a verdict may have left
	rival protocol.Record // whom the caller waits for, while it has no lock
}

// chain counts how long the lock has been in this process.
type chain struct {
	links  int
	since  time.Time
	rivals bool // other processes wanted the item when the lock was taken
}

// more reports whether the lock may be passed on once more.
func (c chain) more(lease time.Duration) bool {
	limit := linksAlone
	if c.rivals {
		limit = linksRivals
	}
	return c.links < limit && (lease == 0 || time.Since(c.since) < lease/chainOfLease)
}

// place is a caller's place in the line of its item; nil for one that does not
// stand in line.
type place[T any] = local.Place[*local.Part[T], grip]

// join takes a place; part, where set, can be taken along by others.
func (l *Locker[T]) join(raw ddb.Item, part *local.Part[T]) *place[T] {
	return l.lines.Join(l.taker.Core.KeyText(raw), part)
}

// stand waits for the baton of an item, as long as the lock of one of this
// process can last.
func (l *Locker[T]) stand(ctx context.Context, key repo.Key, p *place[T]) (local.State, error) {
	began := time.Now()
	state, err := p.Wait(ctx, l.taker.Lease+l.taker.Skew)
	if p.Stood() {
		l.taker.Core.Observe.Waited(ctx, l.taker.Core.Name, time.Since(began))
	}
	if err == nil && ctx.Err() != nil && state == local.Holding {
		pass(p, p.Baton())
		err = ctx.Err()
	}
	if err != nil && !p.Stood() {
		return state, ddb.CtxError(ctx) // it waited for nobody
	}
	if err != nil {
		return state, ddb.Because(locked(key, p.Seen()), ddb.CtxError(ctx))
	}
	return state, nil
}

// pass hands the baton on; what nobody takes is cleared away.
func pass[T any](p *place[T], g grip) {
	if p.Pass(g) {
		return
	}
	if g.hold != nil { // nobody is waiting any more
		giveBack(g.hold)
	}
	if g.ghost != nil {
		g.ghost.Undo()
	}
}

// giveBack releases a lock that nobody wants. It takes 3 s at most, less than a
// caller of a batch waits for its verdict. That it fails is no news: the lock
// ends with its lease.
func giveBack(h *lock.Lock) {
	ctx, cancel := ddb.Detached(context.Background())
	defer cancel()
	_, _ = h.Release(ctx, lock.Releasing{Strict: true})
}

// inTheWay is who keeps a caller from the item; nil if nobody does.
func inTheWay[T any](key repo.Key, p *place[T]) error {
	if p.Behind() {
		return locked(key, p.Seen())
	}
	if rival := p.Baton().rival; rival.Busy() {
		return lock.Locked(key, rival)
	}
	return nil // its own hold is no lock of another
}

// locked is the error of a caller that waited in line: who holds the item.
func locked(key repo.Key, g grip) error {
	if g.hold != nil {
		return g.hold.Locked()
	}
	if !g.rival.Busy() { // the one in front is on its way to the item
		return fmt.Errorf("item %v: %w: a caller of this process is before this one", key, repo.ErrLocked)
	}
	return lock.Locked(key, g.rival)
}

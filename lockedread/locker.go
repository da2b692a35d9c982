package lockedread

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Locker locks and reads the items of a table. It is safe for concurrent use.
type Locker[T any] struct {
	table   *cas.Table[T]
	locker  *lock.Locker
	combine bool
	queues  local.Queues[*local.Participant[T], handoff] // of this process's callers, by item
}

// New checks the settings. It sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Locker[T], error) {
	if table == nil {
		return nil, fmt.Errorf("%w: the table is nil: make one with repo.NewTable", repo.ErrConfig)
	}
	taking, err := cfg.taking()
	if err != nil {
		return nil, err
	}
	inner := cas.TableOf(table)
	locker := lock.NewLocker(inner.Core, taking)
	locker.Contention, locker.HoldTimes = lock.NewContention(), lock.NewHoldTimes()
	return &Locker[T]{table: inner, locker: locker, combine: cfg.Combine}, nil
}

// Acquire locks an item and reads it, waiting as long as ctx allows. One
// request if nobody holds it, one more per try; a request bills write units of
// the whole item, also when it fails. ErrNotFound if there is no item;
// ErrLocked, with *repo.LockedError, if the waiting ended first.
//
// ctx governs the waiting, never the holding.
func (l *Locker[T]) Acquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, lock.Request{})
}

// TryAcquire is Acquire without waiting: ErrLocked if somebody holds the item.
// One request. With Config.Clockless it never takes over a dead hold, which
// takes watching.
func (l *Locker[T]) TryAcquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, lock.Request{Try: true})
}

// AcquireOrCreate is Acquire, but a key without an item is locked too: the
// item of the hold is then new, with nothing but its key ([Held.Exists] is
// false), and comes into being with the commit. Two requests for a new item.
func (l *Locker[T]) AcquireOrCreate(ctx context.Context, key repo.Key) (*Held[T], error) {
	return l.acquire(ctx, key, lock.Request{Stub: true})
}

func (l *Locker[T]) acquire(ctx context.Context, key repo.Key, how lock.Request) (*Held[T], error) {
	raw, err := l.table.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	if how.Try {
		return l.take(ctx, key, raw, how, nil)
	}
	key = lock.OwnKey(l.table.KeyTable, key, raw) // which is passed on with the lock
	p := l.join(raw, nil)
	if _, err := l.enqueue(ctx, key, p); err != nil {
		return nil, err
	}
	return l.take(ctx, key, raw, how, p)
}

// take makes the handle of the lock that was passed on, or takes the lock.
func (l *Locker[T]) take(ctx context.Context, key repo.Key, raw ddb.Item, how lock.Request, p *waiter[T]) (_ *Held[T], err error) {
	var g handoff
	if p != nil {
		g = p.Handoff()
		defer func() {
			if g.lock == nil { // also if the client panics
				pass(p, handoff{})
			}
		}()
	}
	if g.lock != nil && g.lock.Expired() && !g.lock.Over() {
		release(g.lock) // or we would wait for ourselves
	}
	if g.lock == nil || g.lock.Expired() || g.lock.Over() {
		g, how.Orphan = handoff{}, g.orphan
		text := l.locker.Core.KeyText(raw)
		g.streak.contended = l.locker.Contention.Recent(text)
		if p != nil {
			how.OnWait = func(holder protocol.Record) {
				g.streak.contended = true
				l.locker.Contention.Note(text)
				p.Show(handoff{holder: holder})
			}
		}
		if g.lock, g.item, err = l.locker.Acquire(ctx, key, raw, how); err != nil {
			return nil, err
		}
		g.streak.since = time.Now()
		g.streak.contended = g.streak.contended || g.lock.Waited()
	}
	h := &Held[T]{l: l, lock: g.lock, waiter: p, streak: g.streak, fresh: l.locker.Core.Hidden(g.item)}
	if p != nil {
		p.Show(handoff{lock: g.lock})
	}
	if h.fresh {
		h.start, err = cas.NewSnapshot(l.table, raw)
		h.start.Raw = g.item
	} else {
		h.start, err = cas.SnapshotOf(l.table, g.item)
	}
	if err != nil {
		// The item does not fit the type: give it back rather than block it.
		h.start.Raw = g.item
		return nil, errors.Join(err, h.Release(ctx))
	}
	if h.fresh && !how.Stub { // passed on by one who would have made it
		_ = h.Release(ctx)
		return nil, lock.NotFound(key, l.locker.Core.Name)
	}
	return h, nil
}

// Break ends a hold by force, for operators: the holder of token finds its
// commit refused with ErrLockLost. Token 0 breaks a hold that was taken by
// hand. ErrNotHeld if the item is not held under this token (see
// repo.Table.Inspect). Two requests, one more each time that the holder extends
// the lock between them.
//
// If an answer was lost, the item tells whether the hold was ended by force, by
// this call or another's; ErrOutcomeUnknown if it does not. For that the break of
// a hold by hand leaves an id in the attribute "writers".
func (l *Locker[T]) Break(ctx context.Context, key repo.Key, token int64) error {
	k, err := l.table.EncodeKey(key)
	if err != nil {
		return err
	}
	return l.locker.Break(ctx, key, k, token)
}

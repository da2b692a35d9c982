package lockedread

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// locker is a Locker of any type.
type locker struct {
	table   *cas.Table
	locker  *lock.Locker
	combine bool
	queues  local.Queues[*local.Participant, handoff] // of this process's callers, by item
}

func newLocker(table *cas.Table, cfg lock.Config, combine bool) *locker {
	l := lock.NewLocker(table.Core, cfg)
	l.Contention, l.HoldTimes = lock.NewContention(), lock.NewHoldTimes()
	return &locker{table: table, locker: l, combine: combine}
}

func (l *locker) acquire(ctx context.Context, operation string, key repo.Key, how lock.Request) (_ *hold, err error) {
	raw, err := l.table.EncodeKey(key)
	if err != nil {
		return nil, err
	}
	ctx, told := l.locker.Core.Observe.Call(ctx, telemetry.Pessimistic, operation)
	told.Key(key.String)
	defer told.End(&err)
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
func (l *locker) take(ctx context.Context, key repo.Key, raw ddb.Item, how lock.Request, p *waiter) (_ *hold, err error) {
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
	h := &hold{l: l, lock: g.lock, waiter: p, streak: g.streak, fresh: l.locker.Core.Hidden(g.item)}
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
		return nil, errors.Join(err, h.release(ctx))
	}
	if h.fresh && !how.Stub { // passed on by one who would have made it
		_ = h.release(ctx)
		return nil, lock.NotFound(key, l.locker.Core.Name)
	}
	return h, nil
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// locker is a Locker of any type.
type locker struct {
	table   *typed.Table
	line    *local.Line // of this process's callers
	combine bool
}

func newLocker(table *typed.Table, cfg lock.Config, combine bool) *locker {
	l := lock.NewLocker(table.Core, cfg)
	l.HoldTimes = lock.NewHoldTimes()
	return &locker{table: table, line: local.NewLine(l), combine: combine}
}

func (l *locker) acquire(ctx context.Context, operation string, key repo.Key, how lock.Request) (_ *hold, err error) {
	raw, err := typed.KeyToWrite(ctx, l.table, key)
	if err != nil {
		return nil, err
	}
	ctx, told := l.line.Core.Observe.Call(ctx, telemetry.Pessimistic, operation, key.String)
	defer told.End(&err)
	turn, err := l.line.InTurn(ctx, lock.OwnKey(l.table.KeyTable, key, raw), raw, how, nil)
	if err != nil {
		return nil, err
	}
	return l.hold(ctx, turn, raw)
}

// hold makes the handle of a lock that was taken, or passed on.
func (l *locker) hold(ctx context.Context, turn *local.Turn, raw ddb.Item) (h *hold, err error) {
	h = &hold{l: l, turn: turn, lock: turn.Lock, raw: raw, fresh: l.line.Core.Hidden(turn.Item)}
	if h.fresh {
		h.start, err = typed.NewSnapshot(l.table, raw)
		h.start.Raw = turn.Item
	} else if l.combine {
		h.start, err = typed.SnapshotOf(l.table, turn.Item)
	} else {
		h.start, err = typed.Start(l.table, turn.Item)
	}
	if err != nil {
		// The item does not fit the type: give it back rather than block it.
		_ = h.release(ctx) // what comes of that is no verdict on a call that writes nothing
		return nil, err
	}
	return h, nil
}

package lockedread

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/combine"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

func (l *locker) change(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error, once *typed.Once) (item any, err error) {
	if change == nil {
		return item, typed.NoChange()
	}
	raw, err := l.table.EncodeKey(key)
	if err != nil {
		return item, err
	}
	key = lock.OwnKey(l.table.KeyTable, key, raw)
	ctx, told := l.line.Core.Observe.Call(ctx, telemetry.Pessimistic, typed.OperationOf(create), key.String)
	defer told.End(&err)
	if err := typed.Refuse(ctx, l.table, key, raw); err != nil { // it would wait for itself
		return item, err
	}
	defer once.Begin(ctx, l.line.Core, raw, &err)()
	change = typed.Inside(l.table, raw, change)
	var p *local.Place
	var part *combine.Participant
	if l.combine {
		part = combine.NewParticipant(ctx, create, change, func() error { return l.line.Holder(key, p) })
		part.Once = once
	}
	p = l.line.Join(raw, part)
	state, err := l.line.Enqueue(ctx, key, p)
	switch {
	case err != nil:
		return item, err
	case state == local.Drawn:
		return part.Await()
	case l.combine:
		go l.lead(key, raw, p, part)
		return part.Await()
	}
	turn, err := l.line.Take(ctx, key, raw, lock.Request{Stub: create}, p)
	if err != nil {
		return item, err
	}
	held, err := l.hold(ctx, turn, raw)
	if err != nil {
		return item, err
	}
	return held.apply(ctx, typed.Request{Change: change, Once: once})
}

// lead commits the changes of the first caller and of those that wait behind
// it with one write. It runs on its own, so that no caller's end ends it.
func (l *locker) lead(key repo.Key, raw ddb.Item, p *local.Place, first *combine.Participant) {
	b := combine.NewGroup(l.table, telemetry.Pessimistic, first, func() *combine.Participant {
		next := p.Draw(func(c any) bool {
			part, _ := c.(*combine.Participant)
			return part != nil && part.Create == first.Create
		})
		if next == nil {
			return nil
		}
		return next.Caller.(*combine.Participant)
	})
	for _, alone := range b.Conclude(l.commit(key, raw, p, b, first.Create)) {
		b := combine.NewGroup(l.table, telemetry.Pessimistic, alone, nil)
		p := l.line.Join(raw, nil)
		_, err := l.line.Enqueue(b.Context(), key, p)
		if err == nil {
			err = l.commit(key, raw, p, b, alone.Create)
		}
		b.Conclude(err)
	}
}

// commit runs a group under the lock.
func (l *locker) commit(key repo.Key, raw ddb.Item, p *local.Place, b *combine.Group, create bool) (err error) {
	if ended := goroutine.Apart(func() { err = l.underLock(key, raw, p, b, create) }); ended != nil {
		err = lock.NoVerdict(ended)
	}
	return err
}

func (l *locker) underLock(key repo.Key, raw ddb.Item, p *local.Place, b *combine.Group, create bool) error {
	turn, err := l.line.Take(b.Context(), key, raw, lock.Request{Stub: create}, p)
	if err != nil {
		return err
	}
	held, err := l.hold(b.Context(), turn, raw)
	if err != nil {
		return err
	}
	b.Begin(held.fresh)
	_, err = held.apply(b.Context(), typed.Request{Edit: b.Edit, Made: b.Made, Count: b.Count})
	return err
}

// apply makes an edit under the lock and ends the hold, whatever happens.
func (h *hold) apply(ctx context.Context, call typed.Request) (item any, err error) {
	// That the lock could not be given back is no news for a caller whose result
	// is known: it ends with its lease.
	ended := false
	defer func() {
		if !ended { // also when change panics
			_ = h.release(ctx)
		}
	}()
	h.lock.Report()
	inner, cancel := ddb.While(ctx, h.lock)
	defer cancel()
	edit, err := call.MakeEdit(inner, h.l.table, h.start)
	switch {
	case err != nil && h.lock.Cause() != nil:
		return nil, nesting.Beside(err, h.lock.Cause())
	case err != nil:
		return nil, err
	case edit.Remove && h.fresh:
		return nil, nil // a new item that is not wanted after all
	case edit.Remove:
		err = h.delete(ctx)
	default:
		n := int64(0)
		if call.Count != nil {
			n = call.Count()
		}
		made := func(image ddb.Item) bool { return call.IsMade(ctx, h.l.line.Core, image) }
		item, err = h.conclude(ctx, func() (typed.Edit, error) { return edit, nil }, n, made)
	}
	ended = err == nil
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		ended = true
		_ = h.release(ctx) // finds out, if anybody can
		switch h.lock.OutcomeOfUndecided() {
		case protocol.Committed:
			return item, nil
		case protocol.Lost:
			err = lock.Unwritten(h.l.line.Core.Table, h.lock.Key(), err)
		}
	}
	if err != nil {
		return nil, err
	}
	return item, nil
}

package nolock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// eventWrite is one call that writes an event. All tries carry one id.
type eventWrite struct {
	*engine
	unlocked.Call
	id       protocol.WriteID
	excluded protocol.OnceID // what no try may find
	event    ddb.Item        // its key, time and id
	fill     func(w *protocol.Write, hidden ddb.Item) error
	hidden   ddb.Item // a stub or tombstone that an earlier try found
	flips    int      // refusals because the item was hidden, or became visible
}

// send writes an event, if it is newer than the stored one, until that has a
// verdict.
func (r *engine) send(ctx context.Context, operation string, key repo.Key, raw ddb.Item, fill func(w *protocol.Write, hidden ddb.Item) error) (err error) {
	ctx, told := r.core.Observe.Call(ctx, telemetry.NoLock, operation, key.String)
	defer told.End(&err)
	if err := typed.Refuse(ctx, r.table, key, raw); err != nil {
		return err
	}
	if err := r.checkAhead(raw[r.core.EventTime]); err != nil {
		return fmt.Errorf("%s: %w", r.core.ItemName(key), err)
	}
	e := &eventWrite{engine: r, id: protocol.NewWriteID(), event: raw, fill: fill,
		Call: unlocked.Call{Waiter: lock.Waiter{Core: r.core, Key: key, Raw: r.core.Key(raw), Settings: r.policy.Settings}}}
	e.excluded = lockless.NewExclusion(e.id)
	e.Exclusive(e.excluded)
	return e.SendUntilJudged(ctx, e.id, func() (ddb.Result, error) { return e.try(ctx) }, func(image ddb.Item) (bool, error) { return e.refused(ctx, image) })
}

// try sends the write, over what the last try found.
func (e *eventWrite) try(ctx context.Context) (ddb.Result, error) {
	w := e.core.NewWrite()
	err := e.fill(w, e.hidden)
	for left := (leftovers)(nil); errors.As(err, &left); {
		if e.hidden, err = e.sweep(ctx, e.Key, e.hidden, left); err != nil {
			return ddb.Result{}, err
		}
		w = e.core.NewWrite()
		err = e.fill(w, e.hidden)
	}
	if err != nil {
		return ddb.Result{}, fmt.Errorf("%s: %w", e.core.ItemName(e.Key), err)
	}
	lockless.IfNotExcluded(w, e.excluded)
	if e.core.Version != "" {
		lockless.LeaveUnread(w, e.id)
	}
	e.guard(w, e.event, e.IfFree)
	in, err := w.Update(e.Raw)
	if err != nil {
		return ddb.Result{}, fmt.Errorf("%s: %w", e.core.ItemName(e.Key), err)
	}
	return e.Update(ctx, in, ddb.Options{OnItem: e.hidden == nil, Decide: true}), nil
}

// guard adds to a write what makes an event of it, on an item that ifFree finds free.
func (r *engine) guard(w *protocol.Write, raw ddb.Item, ifFree func(*protocol.Write)) {
	cas.IfNewer(r.core, w, raw)
	ifFree(w)
	lockless.IfOurs(w)
}

// refused decides what the image of a refused try means.
func (e *eventWrite) refused(ctx context.Context, image ddb.Item) (decided bool, err error) {
	err = e.CheckShape(image)
	if err == nil && e.hidden == nil {
		err = e.core.CheckType(image) // also of an item that is nothing but its key: if there were none the write would be applied
	}
	if err != nil {
		return true, err
	}
	if decided, err := e.judge(image); decided {
		return true, err
	}
	if err := e.CheckCounted(image); err != nil {
		return true, err
	}
	e.hidden = nil
	if e.core.Hidden(image) {
		e.hidden = image
	}
	if e.Barred(image) {
		return false, e.WaitOrBreak(ctx, image)
	}
	// It was only hidden, or has just become visible.
	if e.flips++; e.flips > 1 {
		if err := e.WaitAfterConflict(e.flips); e.flips > e.cfg.Attempts {
			return true, err
		}
	}
	return false, nil
}

// unhide brings a stub or tombstone back to sight, as it was seen. An item that
// is in sight keeps its attributes: the TTL on it may be its user's.
func (r *engine) unhide(w *protocol.Write, hidden ddb.Item, d ddb.Diff) {
	w.IfSeen(hidden, r.core.Attr.LockStub, r.core.Attr.Tombstone)
	if hidden == nil {
		return
	}
	typed.MakeVisible(r.core, w, d)
	w.Remove(slices.DeleteFunc(typed.Leftovers(r.core, hidden), d.Has)...)
}

// leftovers are attributes that a stub or tombstone has, not the new item, and on which
// an update builds: no single request can remove an attribute and count it up from
// nothing.
type leftovers []string

func (leftovers) Error() string { return "the tombstone has leftovers that the update changes" }

// sweep clears a stub or tombstone of leftovers, if it is as it was seen, and returns
// it as it is then; nil if it has changed.
func (r *engine) sweep(ctx context.Context, key repo.Key, hidden ddb.Item, left leftovers) (ddb.Item, error) {
	w := r.core.NewWrite()
	w.Remove(left...)
	if hidden[r.core.Attr.LockStub] != nil {
		w.IfSeen(hidden, r.core.Attr.LockStub)
	}
	w.IfSeen(hidden, r.core.Attr.Tombstone, r.core.EventTime)
	if r.core.EventID != "" {
		w.IfSeen(hidden, r.core.EventID)
	}
	w.IfUnlocked()
	in, err := w.Update(r.core.Key(hidden))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.core.ItemName(key), err)
	}
	switch res := r.core.Update(ctx, in, ddb.Options{}); res.Outcome {
	case ddb.Applied:
		swept := maps.Clone(hidden)
		for _, name := range left {
			delete(swept, name)
		}
		return swept, nil
	case ddb.Condition:
		return nil, nil
	default:
		return nil, lock.Unwritten(r.core.Table, key, res.Err) // the event itself was not sent
	}
}

// judge compares the stored event with the one that was refused. decided is false
// where only a lock, or that the item is hidden, stands in the way.
func (e *eventWrite) judge(image ddb.Item) (decided bool, err error) {
	order, ok := e.core.EventOrder(image, e.event)
	if !ok {
		order = -1 // neither: it settles nothing
	}
	var last []byte
	if e.core.Version != "" { // else events leave no id
		last = e.core.LastUnread(image)
	}
	verdict, final := e.Doubt.Event(e.id, last, order)
	switch {
	case !ok && verdict != protocol.Committed:
		return true, fmt.Errorf("%w: %s: the stored event time or id (attributes %q, %q) is of another type", repo.ErrSchema, e.core.ItemName(e.Key), e.core.EventTime, e.core.EventID)
	case !final:
		return false, nil
	case verdict == protocol.Committed:
		return true, nil // it is the stored event, or under it
	case verdict == protocol.Lost:
		return true, fmt.Errorf("%s: %w", e.core.ItemName(e.Key), repo.ErrStale)
	}
	return true, e.Undecided("a later event is stored") // applied and overtaken, or stale from the start
}

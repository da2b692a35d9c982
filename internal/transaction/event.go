package transaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Event is a write that knows no more of its item than what it writes.
type Event struct {
	Raw ddb.Item // key, event time and event id
	// Fill makes the write with its conditions; hidden is the stub or tombstone
	// that it takes the place of, if any.
	Fill func(w *protocol.Write, id protocol.WriteID, hidden ddb.Item) error
	// Known, if set, makes it in the place of Fill on an item that was read: as the
	// image shows, and as whatever else the transaction does demands.
	Known func(w *protocol.Write, id protocol.WriteID, image ddb.Item) error
	// Held, if set, makes it in the place of Fill under the item's lock, which is demanded
	// beside it.
	Held func(w *protocol.Write, id protocol.WriteID, hidden ddb.Item) error
	// Check refuses an item as those conditions do; nil: the event must be newer than
	// the stored one.
	Check func(now ddb.Item) error
	// Do is what it makes of an item that was read; nil: only DynamoDB knows.
	Do func(now ddb.Item) (ddb.Item, error)
	// Clear, if set, makes ready the stub or tombstone that was read, before Fill takes its
	// place, and returns it as it is then; nil if it has changed.
	Clear func(ctx context.Context, hidden ddb.Item) (ddb.Item, error)
	// Whole is, for an item that has to be as in an encoding, that encoding.
	Whole ddb.Item
	// Deletes says that it is the item's deletion, and Single that it must not be sent
	// twice by itself: nothing in its conditions keeps it from being applied again.
	Deletes, Single bool
	// Condition is the error of a caller's own condition that an item fails; nil:
	// there is none.
	Condition func(image ddb.Item) error
}

// Write makes a write that needs not know its item. Of an item that is not known it
// reads nothing, unless such a write was refused before, or has an id of its own.
func (v *View) Write(ctx context.Context, key repo.Key, ev Event) error {
	return v.once(ctx, key, func(ctx context.Context, e *entry, once *typed.Once) error {
		if once == nil && v.needsNoItem(e, ev) {
			e.blind = &event{Event: ev, fill: func(w *protocol.Write, id protocol.WriteID) error { return ev.Fill(w, id, nil) }}
			if ev.Do != nil || ev.Whole != nil || ev.Deletes {
				e.blind.replay = func(e *entry) error { return v.apply(ctx, e, ev, nil) }
			}
			return nil
		}
		if err := e.open(ctx, v.tx, true); err != nil {
			return err
		}
		made, err := e.made(ctx, once)
		if err != nil {
			return err
		}
		switch hidden := e.core.Hidden(e.now); {
		case hidden && made: // and deleted by an event since
			return lock.NotFound(key, e.core.Name)
		case made:
			return nil
		}
		return v.apply(ctx, e, ev, once)
	})
}

// needsNoItem reports whether an event without an id can be sent with nothing read.
func (v *View) needsNoItem(e *entry, ev Event) bool {
	switch {
	case e.known, e.blind != nil:
		return false
	case ev.Check != nil && e.refuted:
		return false
	case len(e.core.Unique.All) > 0 && (ev.Whole != nil || ev.Deletes):
		return false // what the item has claimed must be known
	}
	return !ev.Deletes || v.tx.call.once == nil // a deletion leaves no id: the item is asked for it
}

// errDuplicate says that an event is stored already.
var errDuplicate = errors.New("the event is stored already")

// apply does an event to the item, which is known.
func (v *View) apply(ctx context.Context, e *entry, ev Event, once *typed.Once) error {
	check := ev.Check
	if check == nil {
		check = func(ddb.Item) error { return e.checkNewer(ev.Raw) }
	}
	err := check(e.now)
	if err == nil {
		err = e.countable(ev)
	}
	switch {
	case errors.Is(err, errDuplicate):
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", e.core.ItemName(e.key), err)
	case ev.Whole != nil:
		return e.put(ctx, ev.Whole, once)
	case ev.Deletes:
		v.remove(e)
		return nil
	case ev.Do != nil:
		now, err := ev.Do(e.now)
		if err == nil {
			e.now, e.count = now, e.count+1
		}
		return err
	case e.changed():
		return e.unreadable()
	}
	if err := v.clear(ctx, e, ev); err != nil {
		return err
	}
	e.blind = &event{Event: ev, once: once, fill: ev.on(e, e.image)}
	return nil
}

// clear makes ready the stub or tombstone that was read, where the event asks for that.
func (v *View) clear(ctx context.Context, e *entry, ev Event) error {
	if ev.Clear == nil || len(e.image) == 0 || !e.core.Hidden(e.image) {
		return nil
	}
	cleared, err := ev.Clear(ctx, e.image)
	if err != nil {
		return err
	}
	if cleared == nil {
		e.known = false
		return v.tx.beginAnew(&repo.ConflictError{Table: e.core.Name, Key: e.key, Attempts: 1})
	}
	e.image, e.now = cleared, cleared
	return nil
}

// on is how the event is written on an item that was read.
func (ev Event) on(e *entry, image ddb.Item) func(*protocol.Write, protocol.WriteID) error {
	var hidden ddb.Item
	if e.core.Hidden(image) && len(image) > 0 {
		hidden = image
	}
	return func(w *protocol.Write, id protocol.WriteID) error {
		switch {
		case ev.Known != nil:
			return ev.Known(w, id, image)
		case ev.Held != nil && e.turn != nil:
			return ev.Held(w, id, hidden)
		}
		return ev.Fill(w, id, hidden)
	}
}

// countable refuses an event on an item whose version cannot be counted on, but for one
// that deletes it, or begins it anew.
func (e *entry) countable(ev Event) error {
	if ev.Deletes || ev.Whole != nil && e.core.Hidden(e.now) {
		return nil
	}
	if err := lockless.CheckCounted(e.core, e.now); err != nil {
		return fmt.Errorf("%w: %w", repo.ErrSchema, err)
	}
	return nil
}

// checkNewer refuses an event that is not newer than the stored one.
func (e *entry) checkNewer(raw ddb.Item) error {
	if e.now[e.core.EventTime] == nil {
		return nil
	}
	switch order, ok := e.core.EventOrder(e.now, raw); {
	case !ok:
		return fmt.Errorf("%w: the stored event time or id (attributes %q, %q) is of another type", repo.ErrSchema, e.core.EventTime, e.core.EventID)
	case order == 0:
		return errDuplicate
	case order > 0:
		return repo.ErrStale
	}
	return nil
}

package transaction

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Event is a write that knows no more of its item than what it writes.
type Event struct {
	Raw ddb.Item // key, event time and event id
	// Fill makes the write with its conditions; hidden is the stub or tombstone
	// that it takes the place of, if any.
	Fill func(w *protocol.Write, id protocol.WriteID, hidden ddb.Item) error
	// Do is what it makes of an item that was read; nil: only DynamoDB knows.
	Do func(now ddb.Item) (ddb.Item, error)
	// Whole is, for an item that has to be as in an encoding, that encoding.
	Whole ddb.Item
}

// Apply does an event to its item, unless the item has it already, or a later one
// (ErrStale). Of an item that is not known it reads nothing.
func (v *View[T]) Apply(ctx context.Context, key repo.Key, ev Event) error {
	return v.on(ctx, key, func(ctx context.Context, e *entry) error {
		if !e.known && e.blind == nil {
			e.blind = &event{fill: func(w *protocol.Write, id protocol.WriteID) error { return ev.Fill(w, id, nil) }}
			if ev.Do != nil || ev.Whole != nil {
				e.blind.replay = func(e *entry) error { return e.apply(ev) }
			}
			return nil
		}
		if err := e.open(ctx, v.tx, true); err != nil {
			return err
		}
		return e.apply(ev)
	})
}

// errDuplicate says that an event is stored already.
var errDuplicate = errors.New("the event is stored already")

// apply does an event to the item, which is known.
func (e *entry) apply(ev Event) error {
	switch err := e.checkNewer(ev.Raw); {
	case errors.Is(err, errDuplicate):
		return nil
	case err != nil:
		return fmt.Errorf("item %v: %w", e.key, err)
	case ev.Whole != nil:
		return e.put(ev.Whole, nil)
	case ev.Do != nil:
		now, err := ev.Do(e.now)
		if err == nil {
			e.now, e.count = now, e.count+1
		}
		return err
	case e.changed():
		return e.unreadable()
	}
	image := e.image
	e.blind = &event{fill: func(w *protocol.Write, id protocol.WriteID) error {
		hidden := image
		if !e.core.Hidden(image) || len(image) == 0 {
			hidden = nil
		}
		if err := ev.Fill(w, id, hidden); err != nil {
			return err
		}
		w.IfAsRead(image)
		return nil
	}}
	return nil
}

// checkNewer refuses an event that is not newer than the stored one.
func (e *entry) checkNewer(raw ddb.Item) error {
	if len(e.now) == 0 || e.now[e.core.EventTime] == nil {
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

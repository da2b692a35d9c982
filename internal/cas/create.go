package cas

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Create writes an item that must not exist yet (stubs and tombstones count as
// nothing). The version of a new item is 1. One request, one more where a stub or
// a tombstone is in its place: what that has kept must be seen to be removed.
func Create[T any](ctx context.Context, t *Table[T], item T, s lock.Settings) (T, error) {
	var zero T
	raw, err := t.EncodeGiven(item)
	if err != nil {
		return zero, err
	}
	core := t.Core
	turn := &lock.Waiter{Core: core, Key: t.KeyOf(item), Raw: core.Key(raw), Settings: s}
	if err := turn.Do(ctx, func() error { return create(ctx, turn, raw) }); err != nil {
		return zero, err
	}
	return t.WithVersion(item, 1), nil
}

// create sends the same change, with the same id, until it has a verdict.
func create(ctx context.Context, turn *lock.Waiter, raw ddb.Item) error {
	core, id := turn.Core, protocol.NewWriteID()
	var hidden ddb.Item // the stub or tombstone that the last try found
	for tries := 1; ; tries++ {
		in, err := createInput(core, raw, id, hidden)
		if err != nil {
			return fmt.Errorf("item %v: %w", turn.Key, err)
		}
		res := turn.Update(ctx, in, ddb.Options{OnItem: hidden == nil})
		switch res.Outcome {
		case ddb.Applied:
			return nil
		case ddb.Condition:
		default:
			return lock.Failed(turn.Key, res)
		}
		switch turn.Doubt.ByID(id, core.Ring(res.Image)) {
		case protocol.Committed:
			return nil
		case protocol.Undecided:
			// Not our item. It may have been there before, or it was made after
			// ours had been created and deleted: nothing tells. If it is only a
			// lock's, ours may be created yet. To wait for that and to repeat the
			// write could create the item twice.
			return turn.Undecided("another item is there")
		}
		if err := inPlace(ctx, turn, res.Image, raw, hidden); err != nil {
			return err
		}
		if tries >= createTries {
			return &repo.ConflictError{Key: turn.Key, Attempts: tries}
		}
		hidden = res.Image
	}
}

// createTries bounds how often a key's stub or tombstone may change under a
// Create.
const createTries = 64

// inPlace decides what the image of a refused Create means: nil is for another
// try, on what the image shows. hidden is what the refused one went by.
func inPlace(ctx context.Context, t *lock.Waiter, image, raw, hidden ddb.Item) error {
	core := t.Core
	if err := t.CheckShape(image); err != nil {
		return err
	}
	switch {
	case hidden != nil && core.Absent(image):
		return nil // what was there has gone
	case core.Absent(image), !core.Hidden(image):
		return fmt.Errorf("%w: %v in table %q", repo.ErrExists, t.Key, core.Name)
	case image[core.Attr.LockedBy] != nil:
		return t.WaitOrBreak(ctx, image)
	case core.EventTime == "" || image[core.EventTime] == nil:
		return nil
	}
	order, ok := core.EventOrder(image, raw)
	switch {
	case !ok:
		return fmt.Errorf("%w: item %v: the event time or id of its tombstone is of another type", repo.ErrSchema, t.Key)
	case order >= 0:
		return fmt.Errorf("item %v was deleted by a later event: %w", t.Key, repo.ErrStale)
	}
	return nil
}

// createInput is the request that creates an item: where there is none, or, in
// the second place, where hidden was seen.
func createInput(core *protocol.Core, raw ddb.Item, id protocol.WriteID, hidden ddb.Item) (*dynamodb.UpdateItemInput, error) {
	d := core.Whole(raw)
	if core.Version != "" {
		d = d.Without(core.Version)
	}
	if err := core.CheckSize(core.Key(raw), d); err != nil {
		return nil, err
	}
	w := core.NewWrite()
	if core.Absent(hidden) {
		d.Remove = nil // there is nothing
		w.IfAbsent(core.Partition)
	} else {
		MakeVisible(core, w, d)
		w.Remove(Unmapped(core, Leftovers(core, hidden))...)
		w.IfExists(core.Partition)
		w.IfSeen(hidden, core.Attr.LockStub, core.Attr.Tombstone, core.Attr.Writers)
		for _, name := range []string{core.EventTime, core.EventID} {
			if name != "" {
				w.IfSeen(hidden, name)
			}
		}
		w.IfUnlocked()
	}
	w.Apply(d)
	if core.Version != "" {
		w.Set(core.Version, ddb.Integer(1))
	}
	w.Set(core.Attr.Writers, id.Push(nil))
	return w.Update(core.Key(raw))
}

// IfNewer demands, where the type has an event time, that the item's event is
// newer than the stored one.
func IfNewer(core *protocol.Core, w *protocol.Write, raw ddb.Item) {
	if core.EventTime == "" {
		return
	}
	at, id := w.Name(core.EventTime), ""
	when := raw[core.EventTime]
	if when == nil {
		when = ddb.Number("0") // left out when empty
	}
	value := w.Value(when)
	if core.EventID != "" {
		if tie := raw[core.EventID]; tie != nil {
			n := w.Name(core.EventID)
			id = " OR (" + at + " = " + value + " AND (attribute_not_exists(" + n + ") OR " + n + " < " + w.Value(tie) + "))"
		}
	}
	w.If("(attribute_not_exists(" + at + ") OR " + at + " < " + value + id + ")")
}

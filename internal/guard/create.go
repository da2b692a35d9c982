package guard

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Create writes an item that must not exist yet (stubs and tombstones count as
// nothing). The version of a new item is 1. One request, one more where a stub or
// a tombstone is in its place: what that has kept must be seen to be removed.
func Create[T any](ctx context.Context, t *repo.Table[T], item T, s Settings) (T, error) {
	var zero T
	raw, err := t.EncodeGiven(item)
	if err != nil {
		return zero, err
	}
	core := t.Core()
	turn := &Turn{Core: core, Key: t.KeyOf(item), Raw: core.Key(raw), Settings: s}
	defer turn.Done(ctx)
	var hidden ddb.Item // the stub or tombstone that the last try found
	for tries := 1; ; tries++ {
		id := ddb.NewWriteID()
		in, err := createInput(core, raw, id, hidden)
		if err != nil {
			return zero, repo.Classify(fmt.Errorf("item %v: %w", turn.Key, err))
		}
		res := core.Update(ctx, in, ddb.Options{})
		switch {
		case res.Outcome == ddb.Applied, res.Outcome == ddb.Condition && ddb.RingVerdict(id, nil, core.Ring(res.Image)) == ddb.Committed:
			return t.WithVersion(item, 1), nil
		case res.Outcome != ddb.Condition:
			return zero, Failed(turn.Key, res)
		case !res.Clean:
			// Not our item. It may have been there before, or it was made after
			// ours had been created and deleted: nothing tells.
			return zero, UnknownOutcome(turn.Key, nil)
		}
		if err := turn.inPlace(ctx, res.Image, raw, hidden); err != nil {
			return zero, err
		}
		if tries >= createTries {
			return zero, &repo.ConflictError{Key: turn.Key, Attempts: tries}
		}
		hidden = res.Image
	}
}

// createTries bounds how often a key's stub or tombstone may change under a
// Create.
const createTries = 64

// inPlace decides what the image of a refused Create means: nil is for another
// try, on what the image shows. hidden is what the refused one went by.
func (t *Turn) inPlace(ctx context.Context, image, raw, hidden ddb.Item) error {
	core := t.Core
	if err := t.CheckShape(image); err != nil {
		return err
	}
	switch {
	case hidden != nil && core.Absent(image):
		return nil // what was there has gone
	case core.Absent(image), !core.Hidden(image):
		return fmt.Errorf("%w: %v in table %q", repo.ErrExists, t.Key, core.Table)
	case image[core.Attr.LockedBy] != nil:
		return t.Yield(ctx, image)
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
func createInput(core *ddb.Core, raw ddb.Item, id ddb.WriteID, hidden ddb.Item) (*dynamodb.UpdateItemInput, error) {
	d := core.Whole(raw)
	if core.Version != "" {
		d = d.Without(core.Version)
	}
	if err := core.CheckSize(raw, ddb.Diff{}); err != nil {
		return nil, err
	}
	w := core.NewWrite()
	if core.Absent(hidden) {
		d.Remove = nil // there is nothing
		w.IfAbsent(core.Partition)
	} else {
		Unhide(core, w, d)
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
func IfNewer(core *ddb.Core, w *ddb.Write, raw ddb.Item) {
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

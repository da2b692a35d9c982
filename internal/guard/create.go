package guard

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/repo"
)

// Create writes an item that must not exist yet (stubs and tombstones count as
// nothing). The version of a new item is 1. One request.
func Create[T any](ctx context.Context, t *repo.Table[T], item T, s Settings) (T, error) {
	var zero T
	raw, err := t.EncodeGiven(item)
	if err != nil {
		return zero, err
	}
	core := t.Core()
	turn := &Turn{Core: core, Key: t.KeyOf(item), Raw: core.Key(raw), Settings: s}
	if err := turn.Do(ctx, func() error { return create(ctx, turn, raw) }); err != nil {
		return zero, err
	}
	return t.WithVersion(item, 1), nil
}

// create sends the same write, with the same id, until it has a verdict.
func create(ctx context.Context, turn *Turn, raw ddb.Item) error {
	core, id := turn.Core, ddb.NewWriteID()
	in, err := createInput(core, raw, id)
	if err != nil {
		return repo.Classify(fmt.Errorf("item %v: %w", turn.Key, err))
	}
	for {
		res := turn.Update(ctx, in, ddb.Options{OnItem: true})
		switch res.Outcome {
		case ddb.Applied:
			return nil
		case ddb.Condition:
		default:
			return Failed(turn.Key, res)
		}
		verdict := turn.Doubt.Create(id, core.Ring(res.Image))
		switch {
		case verdict == ddb.Committed:
			return nil
		case verdict == ddb.Undecided:
			// Not our item. It may have been there before, or it was made after
			// ours had been created and deleted: nothing tells. If it is only a
			// lock's, ours may be created yet. To wait for that and to repeat the
			// write could create the item twice.
			return turn.Undecided("another item is there")
		case res.Image[core.Attr.LockedBy] != nil && core.Hidden(res.Image):
			if err := turn.Yield(ctx, res.Image); err != nil {
				return err
			}
		case core.Hidden(res.Image):
			return fmt.Errorf("item %v was deleted by a later event: %w", turn.Key, repo.ErrStale)
		default:
			return fmt.Errorf("%w: %v in table %q", repo.ErrExists, turn.Key, core.Table)
		}
	}
}

func createInput(core *ddb.Core, raw ddb.Item, id ddb.WriteID) (*dynamodb.UpdateItemInput, error) {
	d := core.Whole(raw)
	if core.Version != "" {
		d = d.Without(core.Version)
	}
	if err := core.CheckSize(core.Key(raw), d); err != nil {
		return nil, err
	}
	w := core.NewWrite()
	w.Apply(d)
	if core.Version != "" {
		w.Set(core.Version, ddb.Integer(1))
	}
	w.Set(core.Attr.Writers, id.Push(nil))
	Unhide(core, w, d)
	w.If("(attribute_not_exists(" + w.Name(core.Partition) + ") OR attribute_exists(" + w.Name(core.Attr.LockStub) +
		") OR attribute_exists(" + w.Name(core.Attr.Tombstone) + "))")
	w.IfUnlocked()
	IfNewer(core, w, raw)
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

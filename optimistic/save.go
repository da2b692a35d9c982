package optimistic

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/repo"
)

// save writes a whole item at its version. It has not read the item, so it
// cannot extend the ring of writers: it starts a new one.
func (r *Repository[T]) save(ctx context.Context, item T) (T, error) {
	var zero T
	raw, err := r.table.EncodeGiven(item)
	if err != nil {
		return zero, err
	}
	core := r.table.Core()
	if err := core.CheckSize(raw, ddb.Diff{}); err != nil {
		return zero, repo.Classify(fmt.Errorf("item %v: %w", r.table.KeyOf(item), err))
	}
	version := r.table.Version(item)
	id := ddb.NewWriteID()
	send := func(ctx context.Context, key ddb.Item) (ddb.Result, error) {
		w := core.NewWrite()
		w.Apply(core.Whole(raw).Without(core.Version))
		w.Set(core.Version, ddb.Integer(version+1))
		w.Set(core.Attr.Writers, id.Push(nil))
		atVersion(core, w, version)
		in, err := w.Update(key)
		if err != nil {
			return ddb.Result{}, repo.Classify(err)
		}
		return core.Update(ctx, in, ddb.Options{}), nil
	}
	if err := r.versioned(ctx, item, raw, id, send); err != nil {
		return zero, err
	}
	return r.table.WithVersion(item, version+1), nil
}

func (r *Repository[T]) removeVersion(ctx context.Context, item T) error {
	raw, err := r.table.Encode(item)
	if err != nil {
		return err
	}
	core := r.table.Core()
	version := r.table.Version(item)
	return r.versioned(ctx, item, raw, ddb.NewWriteID(), func(ctx context.Context, key ddb.Item) (ddb.Result, error) {
		w := core.NewWrite()
		atVersion(core, w, version)
		return core.Delete(ctx, w.Delete(key), ddb.Options{Once: true}), nil
	})
}

// atVersion demands a visible, unlocked item at a version; version 0 is an
// item from before the library.
func atVersion(core *ddb.Core, w *ddb.Write, version int64) {
	w.IfExists(core.Partition)
	if version == 0 {
		w.If("(attribute_not_exists(" + w.Name(core.Version) + ") OR " + w.Name(core.Version) + " = " + w.Value(ddb.Integer(0)) + ")")
	} else {
		w.IfEqual(core.Version, ddb.Integer(version))
	}
	w.IfAbsent(core.Attr.LockStub)
	w.IfAbsent(core.Attr.Tombstone)
	w.IfUnlocked()
	w.IfOurs()
}

// versioned sends a write that is bound to item's version, and waits while
// somebody holds the item at that very version.
func (r *Repository[T]) versioned(ctx context.Context, item T, raw ddb.Item, id ddb.WriteID, send func(context.Context, ddb.Item) (ddb.Result, error)) error {
	core := r.table.Core()
	turn := &guard.Turn{Core: core, Key: r.table.KeyOf(item), Raw: core.Key(raw), Settings: r.policy.Settings}
	defer turn.Done(ctx)
	clean := true
	for {
		res, err := send(ctx, turn.Raw)
		clean = clean && res.Clean
		switch {
		case err != nil:
			return fmt.Errorf("item %v: %w", turn.Key, err)
		case res.Outcome == ddb.Applied:
			return nil
		case res.Outcome != ddb.Condition:
			return guard.Failed(turn.Key, res)
		case ddb.RingVerdict(id, nil, core.Ring(res.Image)) == ddb.Committed:
			return nil
		case clean && turn.CheckShape(res.Image) != nil:
			return turn.CheckShape(res.Image)
		case !clean && (core.Absent(res.Image) || guard.Version(core, res.Image) != r.table.Version(item)):
			// Ours may have been applied and overwritten since. At our version
			// it cannot have been: versions only grow.
			return guard.UnknownOutcome(turn.Key, nil)
		case core.Absent(res.Image) || core.Hidden(res.Image):
			return guard.NotFound(turn.Key, core.Table)
		case res.Image[core.Attr.LockedBy] == nil || guard.Version(core, res.Image) != r.table.Version(item):
			err := &repo.ConflictError{Key: turn.Key, Attempts: 1}
			if stored, given := guard.Version(core, res.Image), r.table.Version(item); stored != given {
				return fmt.Errorf("%w: version %d is stored, the item has %d", err, stored, given)
			}
			return err
		}
		if err := turn.Yield(ctx, res.Image); err != nil {
			if !clean { // when the lock is released, an earlier attempt may still fit
				return guard.UnknownOutcome(turn.Key, err)
			}
			return err
		}
	}
}

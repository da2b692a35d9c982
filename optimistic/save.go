package optimistic

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// save writes a whole item at its version. If the process has seen the item at that
// version it extends the ring of writers that was there then, and demands it; else it
// starts a new one.
func (r *engine) save(ctx context.Context, item any) (any, error) {
	item = r.table.Stamp(item, r.table.Core.Clock(), false)
	raw, err := r.table.EncodeGiven(item)
	if err != nil {
		return nil, err
	}
	version := r.table.Version(item)
	if err := typed.CheckCount(r.table, item); err != nil {
		return nil, err
	}
	id := protocol.NewWriteID()
	again := func(ctx context.Context) error {
		return r.alone(ctx, func(ctx context.Context, view *transaction.View) error {
			_, err := r.saveIn(ctx, view, item)
			return err
		})
	}
	err = r.versioned(ctx, "Save", item, raw, id, again, func(ctx context.Context, turn *unlocked.Call, base []byte) (ddb.Result, error) {
		w := turn.Core.NewWrite()
		lockless.IfNotExcluded(w, lockless.NewExclusion(id))
		err := r.saving(w, raw, id, version, base, turn.IfFree)
		if err != nil {
			return ddb.Result{}, fmt.Errorf("%s: %w", turn.Core.ItemName(turn.Key), err)
		}
		w.IfSeen(raw, turn.Core.UniqueAttributes()...) // else it takes a transaction
		in, err := w.Update(turn.Raw)
		if err != nil {
			return ddb.Result{}, fmt.Errorf("%s: %w", turn.Core.ItemName(turn.Key), err)
		}
		return turn.Update(ctx, in, ddb.Options{Absence: true, Holding: true, Decide: true}), nil
	})
	if err != nil {
		return nil, err
	}
	return r.table.WithVersion(item, version+1), nil
}

// saving makes a write of a whole item at its version, on an item with the ring base;
// nil: with any. The item must be free.
func (r *engine) saving(w *protocol.Write, raw ddb.Item, id protocol.WriteID, version int64, base []byte, ifFree func(*protocol.Write)) error {
	core := r.table.Core
	d := core.Whole(raw).Without(core.Version).Without(core.Created) // which stays as it is
	if err := core.CheckSize(core.Key(raw), d); err != nil {
		return err
	}
	w.Apply(d)
	w.Set(core.Version, ddb.Integer(version+1))
	w.Set(core.Attr.Writers, id.Push(base))
	atVersion(core, w, version, ifFree)
	if base != nil {
		w.IfEqual(core.Attr.Writers, ddb.Bytes(base))
	}
	return nil
}

func (r *engine) removeVersion(ctx context.Context, item any) error {
	raw, err := r.table.Encode(item)
	if err != nil {
		return err
	}
	core, version := r.table.Core, r.table.Version(item)
	if len(core.Unique.All) > 0 {
		return r.removeClaims(ctx, item, raw)
	}
	id := protocol.NewWriteID()
	return r.versioned(ctx, "Remove", item, raw, id, nil, func(ctx context.Context, turn *unlocked.Call, _ []byte) (ddb.Result, error) {
		w := core.NewWrite()
		lockless.IfNotExcluded(w, lockless.NewExclusion(id))
		atVersion(core, w, version, turn.IfFree)
		return turn.Delete(ctx, w.Delete(turn.Raw), ddb.Options{Once: true, Absence: true, Holding: true}), nil
	})
}

// atVersion demands a visible, free item at a version; version 0 is an item from before
// the library.
func atVersion(core *protocol.Core, w *protocol.Write, version int64, ifFree func(*protocol.Write)) {
	w.IfExists(core.Partition)
	if version == 0 {
		w.If("(attribute_not_exists(" + w.Name(core.Version) + ") OR " + w.Name(core.Version) + " = " + w.Value(ddb.Integer(0)) + ")")
	} else {
		w.IfEqual(core.Version, ddb.Integer(version))
	}
	w.IfAbsent(core.Attr.LockStub)
	w.IfAbsent(core.Attr.Tombstone)
	ifFree(w)
	lockless.IfOurs(w)
}

// versioned sends a write that is bound to item's version until it has a
// verdict, and waits while somebody holds the item at that very version. id is
// the write's, or nobody's where it leaves none. claims makes the write that changes what the
// item claims, where that is why it was refused.
func (r *engine) versioned(ctx context.Context, operation string, item any, raw ddb.Item, id protocol.WriteID, claims func(context.Context) error, send func(ctx context.Context, turn *unlocked.Call, base []byte) (ddb.Result, error)) (err error) {
	core := r.table.Core
	ctx, told := core.Observe.Call(ctx, telemetry.Optimistic, operation, r.table.KeyOf(item).String)
	defer told.End(&err)
	if err := typed.Refuse(ctx, r.table, r.table.KeyOf(item), raw); err != nil {
		return err
	}
	turn := &unlocked.Call{Waiter: lock.Waiter{Core: core, Key: r.table.KeyOf(item), Raw: core.Key(raw), Settings: r.policy.Settings}}
	turn.Exclusive(lockless.NewExclusion(id))
	stored, pass, err := r.stand(ctx, turn.Key)
	if err != nil {
		return err
	}
	defer func() { pass(stored) }()
	given := r.table.Version(item)
	if stored > given {
		core.Observe.Conflict(ctx, telemetry.Optimistic)
		return otherVersion(core, turn.Key, stored, given)
	}
	before := core.Sighted(turn.Raw)
	turn.Doubt.Before(before.Ring)
	var base []byte
	if before.Version == given {
		base = before.Ring
	}
	err = turn.SendUntilJudged(ctx, id, func() (ddb.Result, error) { return send(ctx, turn, base) }, func(image ddb.Item) (decided bool, err error) {
		stored = typed.Version(core, image)
		decided, err = r.judge(turn, id, image, raw, given, base)
		switch {
		case decided:
			return true, err
		case !turn.Barred(image):
			base = nil // another life of the item, at the same version
			return false, nil
		}
		return false, turn.WaitOrBreak(ctx, image)
	})
	if isClaims(err) {
		if err = claims(ctx); err == nil {
			stored = given + 1
		}
		return err
	}
	switch {
	case err == nil && operation == "Save":
		stored = given + 1
		core.See(turn.Raw, stored, id.Push(base))
	case err == nil:
		stored = 0
	}
	if errors.Is(err, repo.ErrConflict) {
		core.Observe.Conflict(ctx, telemetry.Optimistic)
	}
	return err
}

// judge judges a write bound to a version by the image that refused it. done is
// false where only a lock stands in the way.
func (r *engine) judge(turn *unlocked.Call, id protocol.WriteID, image, raw ddb.Item, given int64, base []byte) (done bool, err error) {
	core := turn.Core
	stored, gone := typed.Version(core, image), core.Absent(image)
	switch verdict, _ := turn.Doubt.Save(id, core.Ring(image), gone, stored, given); {
	case verdict == protocol.Committed:
		return true, nil
	case verdict == protocol.Undecided && gone:
		return true, turn.Undecided(unlocked.FoundNothing)
	case verdict == protocol.Undecided: // applied and overwritten, or too old from the start
		return true, turn.Undecided(unlocked.FoundOthers)
	}
	if err := turn.CheckShape(image); err != nil {
		return true, err
	}
	switch err := checkVersion(core, turn.Key, image, given); {
	case gone:
		return true, lock.NotFound(turn.Key, core.Name)
	case err != nil:
		return true, err
	case !turn.Barred(image) && (base == nil || bytes.Equal(base, core.Ring(image))):
		return true, refusedAt(turn, image, raw)
	}
	// At this version ours is not applied. Once the lock is released it may be, or on
	// another ring.
	return false, nil
}

// checkVersion refuses an item that is not at a version. What has something else where its
// version should be reads as 0, and no call will ever find it at one.
func checkVersion(core *protocol.Core, key repo.Key, image ddb.Item, given int64) error {
	stored, err := typed.Version(core, image), lockless.CheckCounted(core, image)
	switch {
	case core.Hidden(image):
		return lock.NotFound(key, core.Name)
	case stored == 0 && err != nil:
		return lock.Unfit(core, key, err)
	case stored != given:
		return otherVersion(core, key, stored, given)
	}
	return nil
}

func conflicting(core *protocol.Core, key repo.Key) error {
	return &repo.ConflictError{Table: core.Name, Key: key, Attempts: 1}
}

func otherVersion(core *protocol.Core, key repo.Key, stored, given int64) error {
	return fmt.Errorf("%w: version %d is stored, the item has %d", conflicting(core, key), stored, given)
}

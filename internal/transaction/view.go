package transaction

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Strategy is how the items of a repository take part in transactions.
type Strategy struct {
	Table *typed.Table
	By    any // the repository itself
	lock.Settings
	Locker *local.Line // takes the lock of an item at its first touch; nil: none is taken
	// Queue takes the lock of an item that others want, which Contention remembers;
	// nil: that is no reason to lock.
	Queue      *local.Line
	Contention *lock.Contention
	// Check refuses a change by its encodings, and CheckNew a new item; nil: none.
	Check    func(before, after ddb.Item) error
	CheckNew func(item ddb.Item) error
	// Tombstone is what a deletion leaves of an item; nil: nothing.
	Tombstone func(item ddb.Item) ddb.Item
}

func (s *Strategy) member() member {
	return member{by: s.By, core: s.Table.Core, locker: s.Locker, queue: s.Queue, contention: s.Contention, Settings: s.Settings}
}

// View is a repository inside a transaction. It sees what the transaction has
// written.
type View struct {
	tx  *Tx
	s   *Strategy
	ids *typed.OnceCalls // whose id its calls have; nil: they have none
}

// In is the strategy's repository inside a transaction.
func (s *Strategy) In(tx *Tx) *View { return s.OnceIn(tx, nil) }

// OnceIn is In for calls under an operation id.
func (s *Strategy) OnceIn(tx *Tx, ids *typed.OnceCalls) *View { return &View{tx, s, ids} }

// once runs an operation on an item, under the id of the view if it has one.
func (v *View) once(ctx context.Context, key repo.Key, do func(context.Context, *entry, *typed.Once) error) error {
	return v.ids.Do(func(once *typed.Once) error {
		return v.on(ctx, key, func(ctx context.Context, e *entry) error { return do(ctx, e, once) })
	})
}

// on runs an operation on an item.
func (v *View) on(ctx context.Context, key repo.Key, do func(context.Context, *entry) error) error {
	raw, err := v.s.Table.EncodeKey(key)
	if err != nil {
		return err
	}
	ctx, done, err := v.tx.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := nesting.Touch(ctx, nesting.ItemOf(v.s.Table.Core.Table, raw), key, v.tx); err != nil {
		return err
	}
	e, err := v.tx.touch(ctx, v.s.member(), lock.OwnKey(v.s.Table.KeyTable, key, raw), raw)
	if err != nil {
		return err
	}
	defer e.leave()
	return do(ctx, e)
}

// Get reads an item, as the transaction has left it.
func (v *View) Get(ctx context.Context, key repo.Key) (item any, err error) {
	err = v.once(ctx, key, func(ctx context.Context, e *entry, _ *typed.Once) error {
		if err := e.open(ctx, v.tx, false); err != nil {
			return err
		}
		if e.core.Hidden(e.now) {
			return lock.NotFound(key, e.core.Name)
		}
		item, err = v.s.Table.Decode(e.now)
		return err
	})
	return item, err
}

// Create makes an item that must not exist yet. Under an id, one that was made under
// it is returned as it is.
func (v *View) Create(ctx context.Context, item any) (created any, err error) {
	item = v.s.Table.Stamp(item, v.s.Table.Core.Clock(), true)
	raw, err := v.s.Table.EncodeGiven(item)
	if err == nil && v.s.CheckNew != nil {
		err = v.s.CheckNew(raw)
	}
	if err != nil {
		return nil, err
	}
	key := v.s.Table.KeyOf(item)
	err = v.once(ctx, key, func(ctx context.Context, e *entry, once *typed.Once) error {
		if !e.known && !e.refuted && e.blind == nil {
			// That there is none is assumed: the commit finds out.
			e.known, e.image, e.now, e.moment = true, nil, nil, moment{}
		} else if err := e.open(ctx, v.tx, true); err != nil {
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
			created, err = v.s.Table.Decode(e.now)
			return err
		case !hidden:
			return fmt.Errorf("%w: %v in table %q", repo.ErrExists, key, e.core.Name)
		}
		if err := typed.CheckNotStale(e.core, e.now, raw); err != nil {
			return fmt.Errorf("%s: %w", e.core.ItemName(key), err)
		}
		created = v.s.Table.WithVersion(item, 1)
		return e.put(ctx, raw, once)
	})
	if err != nil {
		return nil, err
	}
	return created, nil
}

// put makes of the item what an encoding says, as far as the type knows it.
func (e *entry) put(ctx context.Context, raw ddb.Item, once *typed.Once) error {
	d := e.core.Whole(raw)
	if e.core.Hidden(e.now) {
		d.Remove = append(d.Remove, typed.Unmapped(e.core, typed.Leftovers(e.core, e.now))...)
	} else if e.now[e.core.Created] != nil {
		d = d.Without(e.core.Created) // which stays as it is
	}
	d = d.Without(e.core.Version)
	err := once.MakeRoom(ctx, e.core, e.image, e.now, false)
	if err == nil {
		err = once.Remember(e.core, e.now, &d)
	}
	if err == nil {
		err = e.core.CheckSize(e.stored(), d)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", e.core.ItemName(e.key), err)
	}
	e.change(d)
	return nil
}

// stored is the item, or, where there is none, its key.
func (e *entry) stored() ddb.Item {
	if len(e.now) == 0 {
		return e.raw
	}
	return e.now
}

// change does a difference to the item, and counts it.
func (e *entry) change(d ddb.Diff) {
	var ring protocol.WriteID // the commit's own takes its place
	e.now = typed.ApplyTo(e.core, e.stored(), d, ring.Push(nil), 1)
	e.count++
}

// Update changes an item.
func (v *View) Update(ctx context.Context, key repo.Key, change func(context.Context, any) error) (any, error) {
	return v.update(ctx, key, false, change)
}

// Upsert changes an item, or makes it.
func (v *View) Upsert(ctx context.Context, key repo.Key, change func(context.Context, any) error) (any, error) {
	return v.update(ctx, key, true, change)
}

func (v *View) update(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error) (item any, err error) {
	if change == nil {
		return item, typed.NoChange()
	}
	err = v.once(ctx, key, func(ctx context.Context, e *entry, once *typed.Once) error {
		if err := e.open(ctx, v.tx, true); err != nil {
			return err
		}
		hidden := e.core.Hidden(e.now)
		if hidden && !create {
			return lock.NotFound(key, e.core.Name)
		}
		edit, err := v.edit(ctx, e, hidden, change, once)
		switch {
		case err != nil:
			return err
		case edit.Remove && hidden:
			return nil // a new item that is not wanted after all
		case edit.Remove:
			v.remove(e)
			return nil
		case edit.Diff.Empty() && !hidden:
			item = edit.Item
			return nil
		}
		e.change(edit.Diff)
		item = v.s.Table.WithVersion(edit.Item, typed.Version(e.core, e.now))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return item, nil
}

// edit runs a change. The item is nobody else's meanwhile, in this transaction
// either.
func (v *View) edit(ctx context.Context, e *entry, hidden bool, change func(context.Context, any) error, once *typed.Once) (edit typed.Edit, err error) {
	var from typed.Snapshot
	if hidden {
		from, err = typed.NewSnapshot(v.s.Table, e.raw)
		from.Raw = e.now
	} else {
		from, err = typed.SnapshotOf(v.s.Table, e.now)
	}
	if err != nil {
		return edit, err
	}
	from.Base = e.image
	edit, err = typed.ChangeOnce(ctx, v.s.Table, from, e.inside(change), once)
	if err != nil || edit.Remove || edit.Diff.Empty() && !hidden {
		return edit, err
	}
	if err = typed.CheckNotStale(e.core, from.Raw, edit.After); err == nil && v.s.Check != nil {
		err = v.s.Check(from.Before, edit.After)
	}
	if err != nil {
		return edit, fmt.Errorf("%s: %w", e.core.ItemName(e.key), err)
	}
	return edit, nil
}

// remove deletes the item.
func (v *View) remove(e *entry) {
	switch {
	case v.s.Tombstone != nil:
		e.now, e.count = v.s.Tombstone(e.now), e.count+1
	case e.core.Hidden(e.image):
		e.now, e.count = e.image, 0 // the transaction itself had made it
	default:
		e.now = nil
	}
}

// Delete deletes an item, but not one that was changed under the id of the view.
func (v *View) Delete(ctx context.Context, key repo.Key) error {
	return v.once(ctx, key, func(ctx context.Context, e *entry, once *typed.Once) error {
		if err := e.open(ctx, v.tx, true); err != nil {
			return err
		}
		if e.core.Hidden(e.now) {
			return lock.NotFound(key, e.core.Name)
		}
		made, err := e.made(ctx, once)
		if err == nil && !made {
			v.remove(e)
		}
		return err
	})
}

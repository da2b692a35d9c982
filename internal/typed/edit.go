package typed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/repo"
)

// Edit is a user's change to an item, ready to be written.
type Edit struct {
	Item   any
	After  ddb.Item // its encoding; nil where nobody asks for it
	Diff   ddb.Diff // without the version
	Remove bool     // delete the item instead
}

// Snapshot is an item before a change.
type Snapshot struct {
	Item   any
	Before ddb.Item // its encoding, taken before anybody can alter Item
	Raw    ddb.Item // as stored; nil for a new item
	// Base is what is stored where Raw has changes that are not written yet; nil: Raw is.
	Base ddb.Item

	// stored says that Before has only what Raw does not tell: the change is compared
	// with what is stored.
	stored bool
}

// base is what is stored of the item.
func (s *Snapshot) base() ddb.Item {
	if s.Base != nil {
		return s.Base
	}
	return s.Raw
}

// Start starts from a stored item of which nobody will ask for the encodings before
// and after the change.
func Start(t *Table, raw ddb.Item) (from Snapshot, err error) {
	from.Raw = raw
	from.Item, from.Before, from.stored, err = t.Start(raw)
	return from, err
}

// SnapshotOf starts from a stored item.
func SnapshotOf(t *Table, raw ddb.Item) (Snapshot, error) {
	item, err := t.Decode(raw)
	if err != nil {
		return Snapshot{}, err
	}
	before, err := t.Encode(item)
	if err != nil {
		return Snapshot{}, err
	}
	return Snapshot{Item: item, Before: before, Raw: raw}, nil
}

// NewSnapshot starts from nothing but a key.
func NewSnapshot(t *Table, key ddb.Item) (Snapshot, error) {
	item, err := NewItem(t, key)
	return Snapshot{Item: item, Before: key}, err
}

// NewItem is an item with nothing but a key, and its type where it names one.
func NewItem(t *Table, key ddb.Item) (any, error) {
	if core := t.Core; core.Type != "" {
		key = maps.Clone(key)
		key[core.Type] = core.TypeName
	}
	return t.Decode(key)
}

// Change runs a user's change and compares the result.
func Change(ctx context.Context, t *Table, from Snapshot, change func(context.Context, any) error) (Edit, error) {
	item := t.Copy(from.Item)
	if err := change(ctx, item); err != nil {
		if errors.Is(err, repo.Remove) {
			return Edit{Remove: true}, nil
		}
		return Edit{}, err
	}
	return Compare(t, from, item)
}

// Compare finds what an edited item changes.
func Compare(t *Table, from Snapshot, item any) (Edit, error) {
	if name := t.Altered(from.Item, item); name != "" {
		return Edit{}, fmt.Errorf("%w: field %s of %s: the library writes it", repo.ErrFixed, name, t.Core.ItemName(t.KeyOf(from.Item)))
	}
	d, after, err := difference(t, from, item)
	if err != nil {
		return Edit{}, err
	}
	core := t.Core
	if was, is := t.Version(from.Item), t.Version(item); was != is {
		return Edit{}, fmt.Errorf("%w: version of %s from %d to %d: the library counts it", repo.ErrFixed, core.ItemName(t.KeyOf(from.Item)), was, is)
	}
	if core.Hidden(from.Raw) { // what a tombstone keeps is not the new item's
		for _, name := range core.Mapped {
			if from.Raw[name] != nil && from.Before[name] == nil && after[name] == nil {
				d.Remove = append(d.Remove, name)
			}
		}
		d.Remove = append(d.Remove, Unmapped(core, Leftovers(core, from.Raw))...)
	}
	// A new item has no version in Before but may encode a zero.
	d = d.Without(core.Version)
	e := Edit{Item: item, After: after, Diff: d}
	if begins := core.Hidden(from.Raw); begins || !d.Empty() {
		if err := CheckCount(t, from.Item); err != nil {
			return Edit{}, err
		}
		e.stamp(t, begins)
	}
	if err := core.CheckSize(from.Raw, e.Diff); err != nil {
		return Edit{}, fmt.Errorf("%s: %w", core.ItemName(t.KeyOf(item)), err)
	}
	return e, nil
}

// CheckCount refuses to write an item whose version cannot be counted on.
func CheckCount(t *Table, item any) error {
	if t.Core.Version == "" {
		return nil
	}
	if err := t.Core.CheckCount(t.Version(item)); err != nil {
		return lock.Unfit(t.Core, t.KeyOf(item), err)
	}
	return nil
}

// difference is what an edited item changes, and its encoding where that was needed.
func difference(t *Table, from Snapshot, item any) (d ddb.Diff, after ddb.Item, err error) {
	before := from.Before
	if from.stored {
		d, ok, err := t.Changes(from.Raw, before, from.Item, item)
		if ok || err != nil {
			return d, nil, err
		}
		before = t.Core.Key(from.Raw)
	}
	if after, err = t.EncodeGiven(item); err != nil {
		return d, nil, err
	}
	core := t.Core
	for _, name := range []string{core.Partition, core.Sort} {
		if name != "" && !ddb.Equal(before[name], after[name]) {
			return d, nil, fmt.Errorf("%w: key attribute %q of %s: create another item instead", repo.ErrFixed, name, core.ItemName(t.KeyOf(from.Item)))
		}
	}
	return core.Diff(before, after), after, nil
}

// stamp makes an edit say when it was made; begins says that there was no item.
func (e *Edit) stamp(t *Table, begins bool) {
	if !t.Core.HasRoles() {
		return
	}
	now := t.Core.Clock()
	e.Item = t.Stamp(e.Item, now, begins)
	for _, a := range t.Core.Stamp(now, begins) {
		e.Diff = e.Diff.Without(a.Name)
		e.Diff.Set = append(e.Diff.Set, a)
		e.After[a.Name] = a.Value
	}
}

// Bump counts a data write, which stands for so many changes, in the item's
// version, where the type has one, and leaves the ring with the write's id as evidence.
// It returns the item as it will be.
func Bump(t *Table, w *protocol.Write, writers types.AttributeValue, item any, count int64) any {
	core := t.Core
	if core.Version == "" {
		return item
	}
	next := t.Version(item) + count
	w.Set(core.Version, ddb.Integer(next))
	w.Set(core.Attr.Writers, writers)
	return t.WithVersion(item, next)
}

// Writers is the ring that a write based on raw leaves; nil where the type has
// no version.
func Writers(core *protocol.Core, id protocol.WriteID, raw ddb.Item) types.AttributeValue {
	if core.Version == "" {
		return nil
	}
	return core.Push(id, raw)
}

// Leftovers are the attributes of a deleted item that its tombstone has kept: a
// delete event that has not read the item, or whose type does not know them,
// could not take them away. They are not the new item's. A type without an event
// time cannot tell them from what keeps late events out, so it leaves them alone.
func Leftovers(core *protocol.Core, tombstone ddb.Item) (names []string) {
	if core.EventTime == "" || tombstone[core.Attr.Tombstone] == nil {
		return nil
	}
	return Data(core, tombstone)
}

// Data are the attributes of an item that a tombstone must not keep.
func Data(core *protocol.Core, item ddb.Item) (names []string) {
	for name := range item {
		switch name {
		case core.EventTime, core.EventID, core.Version, core.Attr.TTL:
			continue
		}
		if !core.IsKey(name) && !core.Reserved(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names) // one item, one text
	return names
}

// Unmapped are those of some attributes that the user's type does not map.
func Unmapped(core *protocol.Core, names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(core.Mapped, name) })
}

// MakeVisible removes what made an item invisible to readers.
func MakeVisible(core *protocol.Core, w *protocol.Write, d ddb.Diff) {
	w.Remove(core.Attr.LockStub, core.Attr.Tombstone)
	if !d.Has(core.Attr.TTL) {
		w.Remove(core.Attr.TTL)
	}
}

// NoChange is the error of a call without a change.
func NoChange() error { return fmt.Errorf("%w: the change is nil", repo.ErrConfig) }

// CheckNotStale refuses to bring a deleted item back with an event that is not
// newer than the deletion.
func CheckNotStale(core *protocol.Core, raw, after ddb.Item) error {
	if core.EventTime == "" || raw[core.Attr.Tombstone] == nil || raw[core.EventTime] == nil {
		return nil
	}
	order, ok := core.EventOrder(raw, after)
	if !ok {
		return fmt.Errorf("%w: event times or ids of different types", repo.ErrSchema)
	}
	if order >= 0 {
		return fmt.Errorf("%w: the item was deleted by a later event", repo.ErrStale)
	}
	return nil
}

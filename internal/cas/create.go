package cas

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/internal/unlocked"
	"github.com/dynahold/dynahold/repo"
)

// Create writes an item that must not exist yet (stubs and tombstones count as
// nothing). The version of a new item is 1. One request, one more where a stub or
// a tombstone is in its place: what that has kept must be seen to be removed.
//
// With an id the new item remembers it, and an item that is there and remembers it
// is returned as it is.
func Create(ctx context.Context, t *typed.Table, item any, s lock.Settings, once *typed.Once) (_ any, err error) {
	core := t.Core
	item = t.Stamp(item, core.Clock(), true)
	raw, err := t.EncodeGiven(item)
	if err == nil {
		err = typed.Refuse(ctx, t, t.KeyOf(item), raw)
	}
	if err != nil {
		return nil, err
	}
	ctx, told := core.Observe.Call(ctx, s.Kind, "Create", t.KeyOf(item).String)
	defer told.End(&err)
	c := &creation{Call: unlocked.Call{Waiter: lock.Waiter{Core: core, Key: t.KeyOf(item), Raw: core.Key(raw), Settings: s}}, table: t, id: protocol.NewWriteID(), item: raw, once: once}
	send := func() (ddb.Result, error) {
		d, err := c.diff(ctx)
		if err != nil {
			return ddb.Result{}, fmt.Errorf("%s: %w", c.Core.ItemName(c.Key), err)
		}
		if len(core.Claims(raw)) > 0 {
			return c.claim(ctx, typed.After(core, c.hidden, c.Raw, c.whole(d), 1))
		}
		in, err := c.input(d)
		if err != nil {
			return ddb.Result{}, fmt.Errorf("%s: %w", c.Core.ItemName(c.Key), err)
		}
		return c.Update(ctx, in, ddb.Options{OnItem: c.hidden == nil}), nil
	}
	if err := c.SendUntilJudged(ctx, c.id, send, func(image ddb.Item) (bool, error) { return c.judge(ctx, image) }); err != nil {
		return nil, err
	}
	if c.made != nil {
		return decodeDone(t, c.made)
	}
	return t.WithVersion(item, 1), nil
}

// creation is one call of Create: the same change, with the same id, is sent until
// it has a verdict.
type creation struct {
	unlocked.Call
	table  *typed.Table
	id     protocol.WriteID
	item   ddb.Item // to be made
	once   *typed.Once
	hidden ddb.Item // the stub or tombstone that the last try found
	made   ddb.Item // the item that remembers the id
	tries  int
}

// judge decides what the image of a refused try means.
func (c *creation) judge(ctx context.Context, image ddb.Item) (decided bool, err error) {
	verdict := c.Doubt.ByID(c.id, c.Core.Ring(image))
	if verdict == protocol.Committed {
		return true, nil
	}
	if err := c.once.Consult(ctx, c.Core, image); err != nil {
		return true, err
	}
	if c.once.In(c.Core, image) {
		if err := c.CheckShape(image); err != nil {
			return true, err
		}
		if c.Core.Hidden(image) { // made, and deleted by an event since
			return true, lock.NotFound(c.Key, c.Core.Name)
		}
		c.made = image
		return true, nil
	}
	if verdict == protocol.Undecided {
		// Not our item. It may have been there before, or it was made after
		// ours had been created and deleted: nothing tells. If it is only a
		// lock's, ours may be created yet. To wait for that and to repeat the
		// write could create the item twice.
		return true, c.Undecided("another item is there")
	}
	err = c.once.Refuse(c.Core, image)
	if err != nil {
		return true, fmt.Errorf("%s: %w", c.Core.ItemName(c.Key), err)
	}
	if err := c.inPlace(ctx, image); err != nil {
		return true, err
	}
	if image[c.Core.Attr.LockedBy] == nil { // who waits for a lock has met no other writer
		c.tries++
	}
	if c.tries >= createTries {
		return true, &repo.ConflictError{Table: c.Core.Name, Key: c.Key, Attempts: c.tries}
	}
	c.hidden = image
	return false, nil
}

// createTries bounds how often a key's stub or tombstone may change under a
// Create.
const createTries = 64

// inPlace decides what stands in the place of a new item: nil is for another try,
// on what the image shows.
func (c *creation) inPlace(ctx context.Context, image ddb.Item) error {
	core := c.Core
	if err := c.CheckShape(image); err != nil {
		return err
	}
	switch {
	case c.hidden != nil && core.Absent(image):
		return nil // what was there has gone
	case core.Absent(image), !core.Hidden(image):
		return fmt.Errorf("%w: %v in table %q", repo.ErrExists, c.Key, core.Name)
	case c.Barred(image):
		return c.WaitOrBreak(ctx, image)
	}
	if err := typed.CheckNotStale(core, image, c.item); err != nil {
		return fmt.Errorf("%s: %w", c.Core.ItemName(c.Key), err)
	}
	return nil
}

// diff is what the request writes.
func (c *creation) diff(ctx context.Context) (d ddb.Diff, err error) {
	core, raw, hidden := c.Core, c.item, c.hidden
	d = core.Whole(raw).Without(core.Version)
	if err = c.once.MakeRoom(ctx, core, hidden, hidden, false); err == nil {
		err = c.once.Remember(core, hidden, &d)
	}
	if err != nil {
		return d, err
	}
	base := core.Key(raw)
	for _, name := range core.Attr.OnceNames() {
		if ids := hidden[name]; ids != nil { // those of the item before stay
			base[name] = ids
		}
	}
	return d, core.CheckSize(base, d)
}

// whole adds to it what the tombstone in its place has kept.
func (c *creation) whole(d ddb.Diff) ddb.Diff {
	d.Remove = append(slices.Clip(d.Remove), typed.Unmapped(c.Core, typed.Leftovers(c.Core, c.hidden))...)
	return d
}

// input is the request that creates an item: where there is none, or, in the second
// place, where hidden was seen.
func (c *creation) input(d ddb.Diff) (*dynamodb.UpdateItemInput, error) {
	core, raw, hidden := c.Core, c.item, c.hidden
	w := core.NewWrite()
	if core.Absent(hidden) {
		d.Remove = nil // there is nothing
		w.IfAbsent(core.Partition)
	} else {
		typed.MakeVisible(core, w, d)
		w.Remove(typed.Unmapped(core, typed.Leftovers(core, hidden))...)
		w.IfExists(core.Partition)
		w.IfSeen(hidden, core.Named(core.Attr.LockStub, core.Attr.Tombstone, core.Attr.Writers, core.EventTime, core.EventID)...)
		c.IfFree(w)
	}
	w.ApplyOn(hidden, d)
	if core.Version != "" {
		w.Set(core.Version, ddb.Integer(1))
	}
	w.Set(core.Attr.Writers, c.id.Push(nil))
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

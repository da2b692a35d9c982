package transaction

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/lockless"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/typed"
)

// part is what the commit writes to one item, or demands of it.
type part struct {
	*entry
	ending *lock.Part // the end of the lock that is held; nil: none is
	image  ddb.Item   // that has refused the commit
	failed bool
	queue  bool // and it was the queue of the item that refused it: its lock is in place
	again  bool // and it was that its turn in the queue was lost: it takes another
}

// changed reports whether the item is to be written.
func (e *entry) changed() bool {
	return e.blind != nil || e.count > 0 || e.removed() || !e.core.Hidden(e.image) && e.core.Hidden(e.now)
}

// removed reports whether the item is to be deleted.
func (e *entry) removed() bool {
	return e.blind != nil && e.blind.Deletes || len(e.now) == 0 && !e.core.Hidden(e.image)
}

// form is what a part of a transaction is.
type form int

const (
	check         form = iota // that the item is as it was read
	unlocking                 // the end of a lock, and the same check
	change                    // of what was read
	deletion                  // of what was read
	eventWrite                // one that needs not know its item
	eventDeletion             // the same
)

func (p *part) form() form {
	switch {
	case p.blind != nil && p.blind.Deletes:
		return eventDeletion
	case p.blind != nil:
		return eventWrite
	case p.removed():
		return deletion
	case p.changed():
		return change
	case p.ending != nil:
		return unlocking
	}
	return check
}

// write makes the item's part of a transaction.
func (p *part) write(id protocol.WriteID, once *typed.Once) (item types.TransactWriteItem, err error) {
	w, as := p.core.NewWrite(), p.form()
	if err := p.compose(w, as, id, once); err != nil {
		return item, fmt.Errorf("%s: %w", p.core.ItemName(p.key), err)
	}
	switch as {
	case deletion, eventDeletion:
		return ddb.DeleteOf(w.Delete(p.raw)), nil
	case check:
		return w.Check(p.raw)
	}
	if p.ending != nil {
		p.ending.Leave(w)
	}
	in, err := w.Update(p.raw)
	if err != nil {
		return item, fmt.Errorf("%s: %w", p.core.ItemName(p.key), err)
	}
	return ddb.UpdateOf(in), nil
}

// compose puts together what the part writes, and what it demands.
func (p *part) compose(w *protocol.Write, as form, id protocol.WriteID, once *typed.Once) error {
	switch as {
	case eventDeletion:
		return p.blind.fill(w, id)
	case eventWrite:
		if err := p.blind.fill(w, id); err != nil {
			return err
		}
		if p.known {
			p.demand(w)
		}
		return p.blind.remember(w, p.entry, once)
	case change:
		if err := p.fill(w, id, once); err != nil {
			return err
		}
	}
	p.demand(w)
	return nil
}

// demand adds the condition that nobody has written the item since it was read.
func (p *part) demand(w *protocol.Write) {
	if p.ending != nil {
		p.ending.Own(w)
		return
	}
	if p.ifFree != nil {
		lockless.IfAsReadAnd(w, p.entry.image, p.ifFree)
		return
	}
	lockless.IfAsRead(w, p.entry.image)
}

// fill adds what the closure has made of the item: the difference, with the id that
// the transaction has, the version and the ring.
func (e *entry) fill(w *protocol.Write, id protocol.WriteID, once *typed.Once) error {
	now, err := e.remembering(e.now, once)
	if err != nil {
		return err
	}
	d := e.difference(now)
	base := e.image
	if len(base) == 0 {
		base = e.raw
	}
	if err := e.core.CheckSize(base, d); err != nil {
		return err
	}
	w.ApplyOn(e.image, d)
	if v := e.now[e.core.Version]; v != nil && e.count > 0 {
		w.Set(e.core.Version, v)
	}
	ring := id.Push(e.core.Ring(e.image))
	w.Set(e.core.Attr.Writers, ring)
	if e.turn != nil {
		e.left = maps.Clone(now)
		e.left[e.core.Attr.Writers] = ring
	}
	return nil
}

// passOn ends the turn of an item whose lock the commit has ended: with the next one's
// lock, if it was kept, and the item as it is now.
func (e *entry) passOn(c *call, next *lock.Lock) {
	item := e.left
	if item == nil {
		item = e.turn.Item
	}
	e.turn.Pass(next, item)
	e.released(c)
}

// difference is what the closure has changed. The marks of stubs and tombstones, and
// the ids of operations, are attributes like others here.
func (e *entry) difference(now ddb.Item) (d ddb.Diff) {
	names := slices.Clone(e.core.Mapped)
	var others []string
	for _, item := range []ddb.Item{e.image, now} {
		for name := range item {
			if e.isWritten(name) && !slices.Contains(names, name) && !slices.Contains(others, name) {
				others = append(others, name)
			}
		}
	}
	slices.Sort(others) // one item, one text
	for _, name := range append(names, others...) {
		if name == e.core.Version && name != "" {
			continue
		}
		was, had := e.image[name]
		is, has := now[name]
		switch {
		case has && (!had || !ddb.Equal(was, is)):
			d.Set = append(d.Set, ddb.Attribute{Name: name, Value: is})
		case had && !has:
			d.Remove = append(d.Remove, name)
		}
	}
	return d
}

// isWritten reports whether a transaction changes an attribute as it was changed in its
// closure. What delegated commands were carried out is written by who has changed a unique
// attribute with them.
func (e *entry) isWritten(name string) bool {
	if e.core.IsKey(name) {
		return false
	}
	return !e.core.Reserved(name) || e.core.IsOnce(name) || name == e.core.Delegated || name == e.core.Attr.LockStub || name == e.core.Attr.Tombstone
}

// conditionFails reports whether it was its caller's own condition that has refused
// an item's write: nothing else of what the write demands is missing in the image.
func (p *part) conditionFails(once *typed.Once) bool {
	switch {
	case p.blind == nil || p.blind.Condition == nil:
		return false
	case p.known && !ddb.EqualIn(p.entry.image, p.image, p.core.Once[:]...):
		return false // ids have come that a write which begins an epoch must not remove
	case p.ending != nil:
		return !p.queue && p.ending.Stands(p.image)
	case p.core.Hidden(p.image) || p.image[p.core.Attr.LockedBy] != nil:
		return false
	case p.known:
		return lockless.AsRead(p.core, p.entry.image, p.image)
	}
	return once == nil // else the id may be why
}

// judged is what the item's image can prove.
func (p *part) judged() lockless.Part {
	j := lockless.Part{Writes: p.changed() && !p.removed(), Removes: p.removed()}
	if p.known {
		j.Base = p.entry.image
	}
	if p.ending != nil {
		j.Hold, j.Valid = p.ending.Holder(), p.ending.Valid()
	}
	return j
}

// size is how much of the limit for all items this one takes, as far as is known: of an item
// that was not read, what is written to it.
func (p *part) size(w types.TransactWriteItem) int {
	size := max(protocol.Size(p.entry.image), protocol.Size(p.now))
	if p.blind != nil && w.Update != nil {
		size = max(size, protocol.Size(w.Update.ExpressionAttributeValues))
	}
	return size
}

package protocol

import (
	"cmp"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
)

// Part is one item of a transaction, as its writer knows it: what its image can
// prove when the transaction was refused.
type Part struct {
	Base    ddb.Item // as read, or as the lock was taken; empty: there was none, or nothing was read
	Writes  bool     // the write leaves the transaction's id in the item's ring
	Removes bool     // the write deletes the item
	Hold    *Holder  // the lock that the write ends; nil: none is held
	Valid   bool     // the hold's deadline has not passed
}

// IfAsRead demands that an item is as in the image that was read of it, and that
// nobody holds it. Whoever follows the protocol changes something of this with
// every write: a change of the data, and the taking of a lock, which may be
// followed by one.
func (w *Write) IfAsRead(image ddb.Item) {
	if len(image) == 0 {
		w.IfAbsent(w.core.Partition)
		return
	}
	w.IfExists(w.core.Partition)
	w.IfSeen(image, w.core.witnesses()...)
	w.IfUnlocked()
}

// witnesses are the attributes of which one at least moves with every write.
func (c *Core) witnesses() []string {
	a := &c.Attr
	return c.Named(a.Writers, a.LockToken, a.LockStub, a.Tombstone, c.Version, c.EventTime, c.EventID, c.Type)
}

// AsRead reports whether an item, in a later image, is as it was read: but for a
// lock, which does not count.
func (c *Core) AsRead(base, now ddb.Item) bool {
	if c.Absent(base) || c.Absent(now) {
		return c.Absent(base) == c.Absent(now)
	}
	for _, name := range c.witnesses() {
		was, had := base[name]
		is, has := now[name]
		if had != has || had && !ddb.Equal(was, is) {
			return false
		}
	}
	return true
}

// JudgePart says what the image of one item, whose condition has refused a
// transaction, tells of the whole. id is that of the transaction's writes; clean
// says that no earlier attempt of it may have been applied.
func (c *Core) JudgePart(p Part, id WriteID, image ddb.Item, clean bool) Verdict {
	now := c.Ring(image)
	if p.Writes && RingVerdict(id, nil, now) == Committed {
		return Committed
	}
	if p.Hold != nil {
		return c.judgeHeld(p, image, clean)
	}
	switch {
	case clean:
		return Lost
	case (p.Writes || p.Removes) && RingVerdict(id, c.Ring(p.Base), now) == Lost && !c.AsRead(p.Base, image):
		// Everything since the item was read is in sight, and the transaction is
		// not: nor will it be, for what it demands has gone.
		return Lost
	}
	// An item that was only checked keeps no trace of what was applied around it.
	return Undecided
}

func (c *Core) judgeHeld(p Part, image ddb.Item, clean bool) Verdict {
	l, err := c.ParseRecord(image)
	switch {
	case err != nil && clean:
		return Lost
	case err != nil:
		return Undecided
	case p.Removes:
		return l.JudgeDelete(*p.Hold, !c.Absent(image), clean, p.Valid)
	}
	return l.JudgeCommit(*p.Hold, !c.Absent(image), clean)
}

// JudgeParts is the verdict on a transaction from those on its parts: it is
// applied on all items or on none, so evidence on one is evidence on all.
// Expired and Lost are one to it.
func JudgeParts(parts ...Verdict) Verdict {
	verdict := Undecided
	for _, v := range parts {
		switch v {
		case Committed:
			return Committed
		case Lost, Expired:
			verdict = Lost
		}
	}
	return verdict
}

// MayWait reports whether a transaction that holds the locks of some items may
// wait for that of another: only while all that it holds comes earlier in the
// order of items. Whoever is waited for then never waits for something earlier.
func MayWait[K cmp.Ordered](held []K, other K) bool {
	return !slices.ContainsFunc(held, func(k K) bool { return k >= other })
}

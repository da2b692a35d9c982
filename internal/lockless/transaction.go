package lockless

import (
	"cmp"
	"slices"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// Part is one item of a transaction, as its writer knows it: what its image can
// prove when the transaction was refused.
type Part struct {
	Base    ddb.Item         // as read, or as the lock was taken; empty: there was none, or nothing was read
	Writes  bool             // the write leaves the transaction's id in the item's ring
	Removes bool             // the write deletes the item
	Hold    *protocol.Holder // the lock that the write ends; nil: none is held
	Valid   bool             // the hold's deadline has not passed
}

// IfAsRead demands that an item is as in the image that was read of it, and that
// nobody holds it. Whoever follows the protocol changes something of this with
// every write: a change of the data, and the taking of a lock, which may be
// followed by one.
func IfAsRead(w *protocol.Write, image ddb.Item) {
	IfAsReadAnd(w, image, (*protocol.Write).IfUnlocked)
}

// IfAsReadAnd is IfAsRead of an item that ifFree finds free.
func IfAsReadAnd(w *protocol.Write, image ddb.Item, ifFree func(*protocol.Write)) {
	if len(image) == 0 {
		w.IfAbsent(w.Core.Partition)
		return
	}
	w.IfExists(w.Core.Partition)
	w.IfSeen(image, witnesses(w.Core)...)
	ifFree(w)
}

// witnesses are the attributes of which one at least moves with every write.
func witnesses(c *protocol.Core) []string {
	a := &c.Attr
	return c.Named(a.Writers, a.LockToken, a.LockStub, a.Tombstone, c.Version, c.EventTime, c.EventID, c.Type)
}

// AsRead reports whether an item, in a later image, is as it was read: but for a
// lock, which does not count.
func AsRead(c *protocol.Core, base, now ddb.Item) bool {
	if c.Absent(base) || c.Absent(now) {
		return c.Absent(base) == c.Absent(now)
	}
	return ddb.EqualIn(base, now, witnesses(c)...)
}

// JudgePart says what the image of one item, whose condition has refused a
// transaction, tells of the whole. id is that of the transaction's writes; clean
// says that no earlier attempt of it may have been applied, nor a copy of it: it has a
// token, by which the service knows both.
func JudgePart(c *protocol.Core, p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	if p.Writes && protocol.RingVerdict(id, nil, c.Ring(image)) == protocol.Committed {
		return protocol.Committed
	}
	if p.Hold != nil {
		return judgeHeld(c, p, image, clean)
	}
	switch {
	case clean:
		return protocol.Lost
	case (p.Writes || p.Removes) && protocol.RingVerdict(id, c.Ring(p.Base), c.Ring(image)) == protocol.Lost && !AsRead(c, p.Base, image):
		// Everything since the item was read is in sight, and the transaction is
		// not: nor will it be, for what it demands has gone. Versions tell nothing: they
		// may be those of an item that was made anew behind it.
		return protocol.Lost
	}
	// An item that was only checked keeps no trace of what was applied around it.
	return protocol.Undecided
}

// JudgeAlone is JudgePart of a transaction of one part, which is sent as the plain write
// of its item. No token tells a copy of that: where the item was read, the image has to.
func JudgeAlone(c *protocol.Core, p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	covered := p.Hold == nil && p.Writes && c.Ring(p.Base) != nil && !c.Absent(image) && RingSince(c, id, p.Base, image) == protocol.Undecided
	gone := p.Hold == nil && p.Removes && !c.Absent(p.Base) && c.Absent(image) // by this, or by others
	return JudgePart(c, p, id, image, clean && !covered && !gone)
}

// RingSince is [RingVerdict] of what was read of an item and of a later image of it. The
// newest id that was read may be out of sight there, because others have written more
// often than a ring has places, or because a write has begun a new one. If the version has
// moved by as much as there are ids of writes, they are those of all writes since: if it is
// the same item, and not one that was made anew.
func RingSince(c *protocol.Core, id protocol.WriteID, base, now ddb.Item) protocol.Verdict {
	v := protocol.RingVerdict(id, c.Ring(base), c.Ring(now))
	if v != protocol.Undecided || c.Version == "" || c.Absent(base) || c.Absent(now) {
		return v
	}
	was, err := ddb.Int(base[c.Version])
	is, other := ddb.Int(now[c.Version])
	if err == nil && other == nil && is > was && is-was == writes(c.Ring(now)) {
		return protocol.Lost
	}
	return v
}

func judgeHeld(c *protocol.Core, p Part, image ddb.Item, clean bool) protocol.Verdict {
	l, err := c.ParseRecord(image)
	switch {
	case err != nil && clean:
		return protocol.Lost
	case err != nil:
		return protocol.Undecided
	case p.Removes:
		return protocol.JudgeDelete(l, *p.Hold, !c.Absent(image), clean, p.Valid)
	}
	return protocol.JudgeCommit(l, *p.Hold, !c.Absent(image), clean)
}

// JudgeParts is the verdict on a transaction from those on its parts: it is
// applied on all items or on none, so evidence on one is evidence on all.
// Expired and Lost are one to it.
func JudgeParts(parts ...protocol.Verdict) protocol.Verdict {
	verdict := protocol.Undecided
	for _, v := range parts {
		switch v {
		case protocol.Committed:
			return protocol.Committed
		case protocol.Lost, protocol.Expired:
			verdict = protocol.Lost
		}
	}
	return verdict
}

// Look is what one item, read while nobody knows what became of a transaction, tells of
// the whole.
type Look struct {
	Applied bool // it has the id of the transaction
	Without bool // it did not have it until then: everything since it was read is in sight
	Moved   bool // it is not as the transaction demands it, and never will be again
}

// LookAt draws the conclusion from the image of an item that was read and is not held.
func LookAt(c *protocol.Core, p Part, id protocol.WriteID, image ddb.Item) Look {
	return Look{
		Applied: p.Writes && protocol.RingVerdict(id, nil, c.Ring(image)) == protocol.Committed,
		Without: p.Writes && protocol.RingVerdict(id, c.Ring(p.Base), c.Ring(image)) == protocol.Lost,
		Moved:   !c.Absent(p.Base) && !AsRead(c, p.Base, image),
	}
}

// JudgeLooks is the verdict on a transaction from looks at its items, all of one moment.
// Lost: it was not applied until then, and cannot be any more.
func JudgeLooks(looks ...Look) protocol.Verdict {
	var all Look
	for _, l := range looks {
		all = Look{all.Applied || l.Applied, all.Without || l.Without, all.Moved || l.Moved}
	}
	switch {
	case all.Applied:
		return protocol.Committed
	case all.Without && all.Moved:
		return protocol.Lost
	}
	return protocol.Undecided
}

// Answer is what came of sending a transaction, as far as the answer tells.
type Answer int

// The answers. The zero value proves nothing.
const (
	Silence   Answer = iota // none, or none that can be believed
	Success                 // it is applied, by this request or by another of the same token
	Condition               // conditions failed: their images are evidence
	Busy                    // others were at its items, or there were too many requests: a copy may be among them
	Denied                  // it is refused for what it is: no copy of it fares better
)

// Step is what the sender of a transaction does next.
type Step int

// The steps. The zero value is the harmless one.
const (
	FindOut   Step = iota // no more of it is sent: what is held is released, and the items are looked at
	Conclude              // it is applied
	SendSame              // nothing is decided: the same bytes go out again, under the same token
	SendOther             // it is not applied, nor will be: others may be sent in its place, or an error is told
	Fail                  // it is not applied: the error stands
)

// Next is the step after an answer. evidence is what the images tell, with the answer or
// by a look at the items behind it; last says that the same may not be sent any more.
//
// An answer that does not prove that a transaction was never applied is followed by the
// same transaction, and by no other: the other could be applied beside it.
func (a Answer) Next(evidence protocol.Verdict, last bool) Step {
	switch {
	case a == Success, evidence == protocol.Committed:
		return Conclude
	case a == Denied:
		return Fail
	case a != Silence && JudgeParts(evidence) == protocol.Lost:
		return SendOther
	case a == Busy && !last:
		return SendSame
	}
	return FindOut
}

// MayWait reports whether a transaction that holds the locks of some items may
// wait for that of another: only while all that it holds comes earlier in the
// order of items. Whoever is waited for then never waits for something earlier.
func MayWait[K cmp.Ordered](held []K, other K) bool {
	return !slices.ContainsFunc(held, func(k K) bool { return k >= other })
}

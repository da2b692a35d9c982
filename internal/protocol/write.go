package protocol

import (
	"github.com/dynahold/dynahold/internal/ddb"
	"time"
)

// Write builds one conditional write under the marks of the protocol.
type Write struct {
	ddb.Write
	core *Core
}

// NewWrite starts an empty write.
func (c *Core) NewWrite() *Write {
	w := &Write{core: c}
	w.Begin(c.Table)
	return w
}

// Clone is a copy to add more to.
func (w *Write) Clone() *Write { return &Write{w.Write.Clone(), w.core} }

// CountVersion counts the version on, where the type has one, in a write that has
// not read the item.
func (w *Write) CountVersion() {
	if version := w.core.Version; version != "" {
		w.SetTo(version, "if_not_exists("+w.Name(version)+", "+w.Value(ddb.Integer(0))+") + "+w.Value(ddb.Integer(1)))
	}
}

// IfUnlocked demands that nobody holds the item. Every write by someone who
// holds no lock carries it.
func (w *Write) IfUnlocked() { w.IfAbsent(w.core.Attr.LockedBy) }

// Own adds the holder's condition to a write; now, if set, demands that the
// lease has not run out.
func (w *Write) Own(id string, token int64, now time.Time) {
	a := &w.core.Attr
	w.IfEqual(a.LockedBy, ddb.Text(id))
	w.IfEqual(a.LockHeld, ddb.Integer(token))
	if !now.IsZero() {
		w.If(w.Name(a.LockTime), " > ", w.Value(ddb.Number(ddb.Seconds(now))))
	}
}

// Unlock removes what names the holder.
func (w *Write) Unlock() {
	a := &w.core.Attr
	w.Remove(a.LockedBy, a.LockTime, a.LockLease, a.LockHeld)
}

// Handoff puts the hold of the next one in the place of an own hold, whose token
// is one less: nobody else can take the lock in between.
func (w *Write) Handoff(id string, token int64, until time.Time, lease time.Duration) {
	a := &w.core.Attr
	w.Set(a.LockedBy, ddb.Text(id))
	w.Set(a.LockTime, ddb.Number(ddb.Seconds(until)))
	if lease > 0 {
		w.Set(a.LockLease, ddb.Number(ddb.LeaseSeconds(lease)))
	}
	w.Set(a.LockHeld, ddb.Integer(token))
	// Counted, not set: others may have enqueued since ours was given out.
	w.SetTo(a.LockToken, w.Name(a.LockToken)+" + "+w.Value(one))
}

// Transfer puts the hold of the first one who waits in the place of an own
// hold, whose token is one less. It fails if that one has left.
func (w *Write) Transfer(to Entry, token int64, until time.Time, grace time.Duration) {
	w.Handoff(NextID(to.ID), token, until, grace)
	entry := w.core.entry(to.ID)
	w.Remove(entry)
	w.IfEqual(entry, ddb.Integer(to.Ticket))
}

// IfNoNewWaiter demands that nobody has enqueued since lockToken was token.
func (w *Write) IfNoNewWaiter(token int64) { w.IfEqual(w.core.Attr.LockToken, ddb.Integer(token)) }

// Dequeue takes an entry away in passing.
func (w *Write) Dequeue(entry string) {
	if entry != "" {
		w.Remove(w.core.entry(entry))
	}
}

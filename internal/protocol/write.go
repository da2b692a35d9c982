package protocol

import (
	"strconv"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Write builds one conditional write under the marks of the protocol.
type Write struct {
	ddb.Write
	Core *Core
}

// NewWrite starts an empty write.
func (c *Core) NewWrite() *Write {
	w := &Write{Core: c}
	w.Begin(c.Table.Table)
	return w
}

// Clone is a copy to add more to.
func (w *Write) Clone() *Write { return &Write{w.Write.Clone(), w.Core} }

// IfUnlocked demands that nobody holds the item. Every write by someone who
// holds no lock carries it.
func (w *Write) IfUnlocked() { w.IfAbsent(w.Core.Attr.LockedBy) }

// Own adds the holder's condition to a write; now, if set, demands that the
// lease has not run out.
func (w *Write) Own(id string, token int64, now time.Time) { w.Core.Own(&w.Write, id, token, now) }

// Own adds the holder's condition to any write of a table's item.
func (c *Core) Own(w *ddb.Write, id string, token int64, now time.Time) {
	a := &c.Attr
	w.IfEqual(a.LockedBy, ddb.Text(id))
	w.IfEqual(a.LockHeld, ddb.Integer(token))
	if !now.IsZero() {
		w.If(w.Name(a.LockTime), " > ", w.Value(ddb.Number(ddb.Seconds(now))))
	}
}

// Unlock removes what names the holder.
func (w *Write) Unlock() {
	a := &w.Core.Attr
	w.Remove(a.LockedBy, a.LockTime, a.LockLease, a.LockHeld)
}

// Handoff puts the hold of the next one in the place of an own hold, whose token
// is one less: nobody else can take the lock in between.
func (w *Write) Handoff(id string, token int64, until time.Time, lease time.Duration) {
	a := &w.Core.Attr
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
// hold, whose token is one less; own is the place of the hold's own entry, if any. It
// fails if that one has left.
func (w *Write) Transfer(to stored.Entry, own *stored.Entry, token int64, until time.Time, grace time.Duration) {
	w.Handoff(stored.NextID(to.ID), token, until, grace)
	if own != nil && own.Place > to.Place {
		w.Vacate(own.Place)
	}
	w.vacateTo(to.Place)
	w.IfWaits(to)
}

// IfNoNewWaiter demands that nobody has enqueued since lockToken was token.
func (w *Write) IfNoNewWaiter(token int64) { w.IfEqual(w.Core.Attr.LockToken, ddb.Integer(token)) }

// IfWaits demands that an entry stands in its place of the queue.
func (w *Write) IfWaits(e stored.Entry) { w.If(w.place(e.Place), " = ", w.Value(entry(e.ID))) }

// Vacate takes a place out of the queue. Whoever ends the hold under which it has seen
// the place there need not ask what stands in it. Of several places the last one goes
// first, so that it does not matter whether a server takes them out at once or one by one.
func (w *Write) Vacate(place int) { w.RemovePath(w.place(place)) }

// maxVacated bounds how many places one request takes out: expressions have 4 KB, and
// fewer than 300 operators. What stays at the head is for the next ones to take out.
const maxVacated = 256

// vacateTo takes the places up to one out of the queue.
func (w *Write) vacateTo(last int) {
	for place := last; place >= max(0, last+1-maxVacated); place-- {
		w.Vacate(place)
	}
}

// place is where a place of the queue is.
func (w *Write) place(n int) string {
	return w.Name(w.Core.Attr.LockQueue) + "[" + strconv.Itoa(n) + "]"
}

package lockless

import (
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Doubt is what a call without the lock remembers of the writes that it has
// sent. Once an attempt had no answer it may have been applied, or may be later,
// when whatever refused its repetition has gone. The doubt lasts over all tries
// of the call, until evidence ends it.
type Doubt struct {
	open bool
	ring []byte // of the last image that shows that nothing was applied until then
}

// Sent notes a write, and whether it certainly changed nothing.
func (d *Doubt) Sent(clean bool) { d.open = d.open || !clean }

// Open reports whether something of what was sent may be applied, or may be
// later.
func (d *Doubt) Open() bool { return d.open }

// Settle ends the doubt of a write that is bound to what it has read, where other
// evidence than the ring shows that the item has moved on.
func (d *Doubt) Settle() { d.open = false }

// End is the verdict of a call that ends without having been applied: of
// waiting, say, or on a request that was refused or never sent.
func (d *Doubt) End() protocol.Verdict {
	if d.open {
		return protocol.Undecided
	}
	return protocol.Lost
}

// Refusal is what the image that refused a write tells about it, whose condition is that
// the item is as it was read, or at the version that it was read at.
type Refusal struct {
	Base, Now []byte // the rings: of what was read, and of the image
	Since     int64  // by how much the version has grown; less than 1: it is another life of the item
	Counted   bool   // the type counts a version
	Gone      bool   // there is none now
	Unmoved   bool   // only a lock stands in the way
	Removes   bool   // the write deletes the item
}

// verdict is what the image tells by itself. That no attempt is in doubt does not say that
// none was applied: the answer may be that to a copy of the request, and the one to the
// first have been lost, or overtaken by others' writes.
func (r Refusal) verdict(id protocol.WriteID) protocol.Verdict {
	v := protocol.RingVerdict(id, r.Base, r.Now)
	switch {
	case v != protocol.Undecided:
		return v
	case r.Removes && r.Gone:
		return protocol.Undecided // by a copy of ours, or by others
	case r.Unmoved, r.Gone, len(r.Now) == 0: // it would be there; or it is gone with the item
		return protocol.Lost
	case !r.Counted && len(r.Base) == 0 && len(r.Now) < stored.RingLen: // no id has left the ring
		return protocol.Lost
	case r.Counted && r.Since <= writes(r.Now): // all since then are in sight; or it is gone with its item
		return protocol.Lost
	case r.Counted && r.Since <= 1 && len(r.Now) < stored.RingLen: // no id has left the ring
		return protocol.Lost
	}
	return protocol.Undecided
}

// AsRead judges a write whose condition is that the item is as it was read, from
// the image that refused it. Lost: neither it nor a write before it is
// applied, nor ever will be, unless only a lock stands in the way.
func (d *Doubt) AsRead(id protocol.WriteID, r Refusal) protocol.Verdict {
	if !d.open {
		return r.verdict(id)
	}
	v := protocol.RingVerdict(id, r.Base, r.Now)
	if v == protocol.Lost && r.Unmoved {
		// When the lock is released an earlier attempt may still find everything
		// as it was read.
		v = protocol.Undecided
	}
	if v == protocol.Lost {
		d.open = false
	}
	return v
}

// Event judges an event write by the image that refused it: the last id of a write that
// had not read it, nil where events leave none, and the order of its event to ours.
// final is false where ours is the newer one, so that only a lock, or that the item is
// hidden, stands in the way, and ours is not applied so far.
//
// A later event is all that a refusal without doubt can tell: whether ours stood before
// it for a moment nobody knows, nor need know, of writes that the event time orders.
func (d *Doubt) Event(id protocol.WriteID, last []byte, order int) (v protocol.Verdict, final bool) {
	v = protocol.RingVerdict(id, d.ring, last)
	if v == protocol.Undecided && !d.open {
		v = protocol.Lost
	}
	switch {
	case v == protocol.Committed, order == 0:
		return protocol.Committed, true
	case order < 0:
		d.ring = last
		return protocol.Lost, false
	case v == protocol.Lost:
		d.open = false // events only grow: what was not applied fits no more
	}
	return v, true
}

// Before notes the ring of an item that was seen before the first write was sent: ours
// puts it out of sight, or stands over it.
func (d *Doubt) Before(ring []byte) { d.ring = ring }

// Save judges a write that is bound to the version given, and pushes its id on the ring
// of what its process has seen at that version, or starts a new one, by the image that
// refused it. final is false at that very version: ours is not applied, but a
// lock may be all that stands in the way.
func (d *Doubt) Save(id protocol.WriteID, ring []byte, gone bool, stored, given int64) (v protocol.Verdict, final bool) {
	v = protocol.RingVerdict(id, d.ring, ring)
	switch {
	case v == protocol.Committed:
		return v, true
	case !gone && stored == given:
		d.ring = ring
		return protocol.Lost, false
	case !d.open:
		return Refusal{Base: d.ring, Now: ring, Since: stored - given, Counted: true, Gone: gone}.verdict(id), true
	}
	switch {
	case v == protocol.Lost && stored > given:
		d.open = false // versions only grow
	default: // what fits to a version to come may be applied then
		v = protocol.Undecided
	}
	return v, true
}

// ByID judges a write that is not bound to anything that it has read, such as one
// that makes an item, by the ring of the item that is there.
func (d *Doubt) ByID(id protocol.WriteID, ring []byte) protocol.Verdict {
	if v := protocol.RingVerdict(id, nil, ring); v == protocol.Committed {
		return v
	}
	return d.End()
}

// writes is how many ids of a ring are surely those of writes that the version counts.
func writes(ring []byte) (n int64) {
	for i := 0; i+stored.RingID <= len(ring); i += stored.RingID {
		if !protocol.WriteID(ring[i : i+stored.RingID]).IsMark() {
			n++
		}
	}
	return n
}

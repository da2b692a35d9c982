package protocol

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
func (d *Doubt) End() Verdict {
	if d.open {
		return Undecided
	}
	return Lost
}

// AsRead judges a write whose condition is that the item is as it was read, from
// the rings of what was read and of the image that refused it. unmoved says that
// only a lock stands in its way. Lost: neither it nor a write before it is
// applied, nor ever will be.
func (d *Doubt) AsRead(id WriteID, base, now []byte, unmoved bool) Verdict {
	v := RingVerdict(id, base, now)
	switch {
	case v == Undecided && !d.open:
		v = Lost
	case v == Lost && d.open && unmoved:
		// When the lock is released an earlier attempt may still find everything
		// as it was read.
		v = Undecided
	}
	if v == Lost {
		d.open = false
	}
	return v
}

// blind judges a write that starts a new ring of its own id, or extends one that it
// demands, the same in all tries: Committed; Lost, which says that it is not applied so
// far; or Undecided.
func (d *Doubt) blind(id WriteID, ring []byte) Verdict {
	if !d.open {
		d.ring = ring
		return Lost
	}
	return RingVerdict(id, d.ring, ring)
}

// Event judges an event write by the image that refused it: its ring, nil where
// events leave none, and the order of its event to ours. final is false where
// ours is the newer one, so that only a lock, or that the item is hidden, stands
// in the way, and ours is not applied so far.
func (d *Doubt) Event(id WriteID, ring []byte, order int) (v Verdict, final bool) {
	v = d.blind(id, ring)
	switch {
	case v == Committed, order == 0:
		return Committed, true
	case order < 0:
		d.ring = ring
		return Lost, false
	case v == Lost:
		d.open = false // events only grow: what was not applied fits no more
	}
	return v, true
}

// Before notes the ring of an item that was seen before the first write was sent: ours
// puts it out of sight, or stands over it.
func (d *Doubt) Before(ring []byte) { d.ring = ring }

// Save judges a write that is bound to the given version by the image that
// refused it. final is false at that very version: ours is not applied, but a
// lock may be all that stands in the way.
func (d *Doubt) Save(id WriteID, ring []byte, gone bool, stored, given int64) (v Verdict, final bool) {
	v = d.blind(id, ring)
	switch {
	case v == Committed:
		return v, true
	case !gone && stored == given:
		d.ring = ring
		return Lost, false
	case v == Lost && stored > given:
		d.open = false // versions only grow
	case d.open: // what fits to a version to come may be applied then
		v = Undecided
	}
	return v, true
}

// ByID judges a write that is not bound to anything that it has read, such as one
// that makes an item, by the ring of the item that is there.
func (d *Doubt) ByID(id WriteID, ring []byte) Verdict {
	if v := RingVerdict(id, nil, ring); v == Committed {
		return v
	}
	return d.End()
}

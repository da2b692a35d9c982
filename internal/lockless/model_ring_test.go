package lockless

import (
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/stored"
)

// Optimistic writers and their ring: reads, writes under the condition that
// version and ring are as read, deletes, creations, and blind event writes that
// start a new ring.

const (
	maxWriters = 3
	maxEdits   = 2 // writes that one writer tries, each with its own id
)

// ids8 is a ring in a state: ids of writes, newest first, 0 where it ends.
type ids8 [stored.RingLen / stored.RingID]int8

// writeID is the id of a write as it is on the wire.
func writeID(id int8) protocol.WriteID { return protocol.WriteID{0: byte(id), stored.RingID - 1: 1} }

// firstMark is the first id of what moves a ring and is no write.
const firstMark = 100

// wire is the ring as the library reads it.
func (r ids8) wire() (ring []byte) {
	for _, id := range r {
		if id != 0 {
			w := writeID(id)
			if id >= firstMark {
				w[stored.RingID-1] = 0
			}
			ring = append(ring, w[:]...)
		}
	}
	return ring
}

func (r ids8) push(id int8) (pushed ids8) {
	pushed[0] = id
	copy(pushed[1:], r[:])
	return pushed
}

// ringItem is the item.
type ringItem struct {
	exists  bool
	locked  bool // by anybody, who changes nothing
	version int8
	ring    ids8
	last    int8 // the write that made it what it is; no attribute
}

// edit is one conditional write of a writer.
type edit struct {
	base    ringItem // as read
	remove  bool
	late    int8 // copies on their way
	applied bool
	lost    bool // its verdict says that it is not applied, and never will be
	gone    bool // what it was applied to was deleted: nothing tells of it
}

// writer is one call of Update, Upsert or Delete.
type writer struct {
	phase   phase // fresh, holding (has an image), ending (has sent), done
	copied  bool  // the present attempt was delivered before, and that answer goes nowhere
	waiting bool
	unsure  bool
	tries   int8
	nth     int8 // the present edit
	edits   [maxEdits]edit
}

type ringWorld struct {
	item   ringItem
	events int8 // writes of the surroundings that are still to come
	next   int8 // id of their next write
	who    [maxWriters]writer
}

// ringRules are the bounds of a search and the rules that a mutant breaks.
type ringRules struct {
	writers, edits int
	tries, copies  int8
	events         int8
	start          []ringItem
	removes        bool // writers may also delete
	creates        bool // a missing item is created (Upsert)
	onceEach       bool // an attempt that was delivered leaves no copy: late ones are attempts without an answer
	locks          bool // the item may be locked, and released unchanged
	resurrect      bool // a create may be applied again after the item was deleted

	// Mutants.
	noRing        bool // the condition is on the version only
	noVersion     bool // the condition is on the ring only
	keepRing      bool // a blind write leaves the ring as it is
	sameID        bool // ids of writers are not unique
	freshID       bool // every attempt carries its own id
	unconditional bool // no condition at all
	noMark        bool // what a lock alone has refused stays possible
	believes      bool // a refusal without doubt is taken at its word
	rawVerdict    bool // the judge does not see that only a lock stands in the way
	judge         func(base, now ringItem, id protocol.WriteID, clean bool) protocol.Verdict
	ringVerdict   func(id protocol.WriteID, base, now []byte) protocol.Verdict
	testimony     func(id protocol.WriteID, base, ring []byte) protocol.Verdict
}

// id of the nth write of writer i.
func (r *ringRules) id(i int, nth, try int8) int8 {
	switch {
	case r.sameID:
		return 1
	case r.freshID:
		return int8(10*i) + 3*nth + try + 1
	}
	return int8(10*i) + 3*nth + 1
}

// write applies the nth edit of writer i.
func (w *ringWorld) write(r *ringRules, i int, nth, try int8) (applied bool, wrong string) {
	it, e := &w.item, &w.who[i].edits[nth]
	asRead := it.exists == e.base.exists && (r.noRing || it.ring == e.base.ring) && (r.noVersion || it.version == e.base.version)
	switch {
	case r.unconditional && it.exists:
	case !asRead || it.locked:
		return false, ""
	case !e.base.exists && (e.applied || e.lost) && !r.resurrect:
		return false, ""
	}
	switch {
	case e.applied:
		return true, "a write is applied twice"
	case e.lost:
		return true, "a write is applied after its verdict said that it never would be"
	case it.last != e.base.last:
		return true, "a write is based on an old read: what others wrote since is lost"
	}
	e.applied = true
	if e.remove {
		w.remove()
		return true, ""
	}
	id := r.id(i, nth, try)
	*it = ringItem{exists: true, version: it.version + 1, ring: e.base.ring.push(id), last: int8(10*i) + 3*nth + 1}
	return true, ""
}

// others are writers, and holders of the lock, that are not judged here.
func (m *ringModel) others(w ringWorld, out emit[ringWorld]) {
	if on := w; m.locks && w.item.exists {
		on.item.locked = !w.item.locked
		out("others", "lock or release the item", on, "")
	}
	if w.events == 0 || w.item.locked {
		return
	}
	w.events--
	id := w.next
	w.next++
	on := w
	it := &on.item
	if !it.exists {
		*it = ringItem{exists: true, version: 1, ring: ids8{id}, last: id}
		out("others", "create the item", on, "")
		return
	}
	it.version++
	it.last = id
	if !m.keepRing {
		it.ring = ids8{id}
	}
	out("others", "write an event blindly", on, "")
	for _, n := range []int{1, len(ids8{}) - 1} {
		on = w
		for range n {
			on.item.ring = on.item.ring.push(id)
		}
		on.item.version, on.item.last = w.item.version+int8(n), id
		out("others", "write "+[...]string{1: "once", 7: "seven times"}[n]+" after reading", on, "")
	}
	on = w
	on.remove()
	out("others", "delete the item", on, "")
}

// remove deletes the item, and with it all traces of what was applied to it.
func (w *ringWorld) remove() {
	w.item = ringItem{}
	for i := range w.who {
		for n := range w.who[i].edits {
			e := &w.who[i].edits[n]
			e.gone = e.gone || e.applied
		}
	}
}

// rmwVerdict is the library's, unless a mutant has another.
func (m *ringModel) rmwVerdict(base, now ringItem, id protocol.WriteID, clean bool) protocol.Verdict {
	unmoved := base.ring == now.ring && base.version == now.version && !m.rawVerdict
	if m.ringVerdict == nil {
		d := Doubt{open: !clean}
		return d.AsRead(id, Refusal{Base: base.ring.wire(), Now: now.ring.wire(), Since: int64(now.version - base.version), Counted: true,
			Gone: !now.exists, Unmoved: unmoved})
	}
	v := m.ringVerdict(id, base.ring.wire(), now.ring.wire())
	if v == protocol.Undecided && clean {
		return protocol.Lost
	}
	if v == protocol.Lost && !clean && unmoved {
		return protocol.Undecided
	}
	return v
}

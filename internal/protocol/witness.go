package protocol

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// witness is what lets a process testify for its own writes. The ring of an item has
// eight places, so who asks late finds others' ids in it. But the process has seen
// more: every image that it was given, to whichever of its callers. Each of them is
// compared with the writes that have no verdict yet.
//
// What an image proves it proves whenever it was taken, and wherever it comes from:
// that an id was in a ring once, or that others have written over what a write is
// bound to. That an id is missing proves nothing.
type witness struct {
	open atomic.Int64 // writes; 0: there is nothing to compare with
	mu   sync.Mutex
	// guarded by mu: by its own id, and by the newest that it had read
	writes map[WriteID][]*Evidence
}

// Evidence is what the process has seen of one write. A nil one has seen nothing.
type Evidence struct {
	witness *witness
	id      WriteID
	key     ddb.Item // of the item
	base    []byte
	seen    atomic.Pointer[testimony]
}

type testimony struct {
	verdict Verdict
	image   ddb.Item
}

// Expect begins to look for a write in the images that this process gets, from before
// it is sent: its answer may be lost long after its traces are. base is the ring that
// it demands of the item with this key; nil: it demands none. End follows.
func (c *Core) Expect(id WriteID, key ddb.Item, base []byte) *Evidence {
	e := &Evidence{witness: c.witness, id: id, key: key, base: base}
	w := e.witness
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range e.keys() {
		w.writes[key] = append(w.writes[key], e)
	}
	w.open.Add(1)
	return e
}

// keys are the ids for which a ring may say something about the write.
func (e *Evidence) keys() []WriteID {
	if len(e.base) == 0 {
		return []WriteID{e.id}
	}
	return []WriteID{e.id, WriteID(e.base)}
}

// End ends Expect.
func (e *Evidence) End() {
	if e == nil {
		return
	}
	w := e.witness
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range e.keys() {
		left := slices.DeleteFunc(w.writes[key], func(other *Evidence) bool { return other == e })
		if w.writes[key] = left; len(left) == 0 {
			delete(w.writes, key)
		}
	}
	w.open.Add(-1)
}

// Verdict is what the images tell: Committed; Lost, which says that the write is not
// applied, nor ever will be; or Undecided. With Committed there is the image that told
// so, which is not to be changed: others have it.
func (e *Evidence) Verdict() (Verdict, ddb.Item) {
	if e == nil {
		return Undecided, nil
	}
	if t := e.seen.Load(); t != nil {
		return t.verdict, t.image
	}
	return Undecided, nil
}

// Expected is how many writes the process looks for in images.
func (c *Core) Expected() int { return int(c.witness.open.Load()) }

// Saw compares an image with the writes that have no verdict yet, and remembers it.
// Nobody changes an image from then on.
func (c *Core) Saw(image ddb.Item) {
	c.sighted(image)
	if c.witness.open.Load() > 0 {
		believed := func(e *Evidence, v Verdict) bool {
			// A transaction leaves one id on all its items. What has covered it on one of them
			// tells of the writes to that one alone.
			return c.CheckShape(image) == nil && (v == Committed || c.KeyText(image) == c.KeyText(e.key))
		}
		c.witness.saw(image, c.Ring(image), believed)
		c.witness.saw(image, c.LastUnread(image), believed)
	}
}

// saw takes an image for evidence if it is the library's: believed says so. One with
// foreign attributes under the library's names is not believed anywhere.
func (w *witness) saw(image ddb.Item, ring []byte, believed func(*Evidence, Verdict) bool) {
	if len(ring) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := 0; i+stored.RingID <= len(ring); i += stored.RingID {
		for _, e := range w.writes[WriteID(ring[i:i+stored.RingID])] {
			if v := Testimony(e.id, e.base, ring); v != Undecided && e.seen.Load() == nil && believed(e, v) {
				e.seen.Store(&testimony{v, image})
			}
		}
	}
}

// Testimony is what a ring, whenever it was seen, tells about the write id that
// demands the ring base. Where base is the ring itself the write may be on its way.
func Testimony(id WriteID, base, ring []byte) Verdict {
	v := RingVerdict(id, base, ring)
	if v == Lost && bytes.HasPrefix(ring, base[:stored.RingID]) {
		return Undecided
	}
	return v
}

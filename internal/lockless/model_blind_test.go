package lockless

// Calls that write without having read: events, saves, creations, and expressions
// that are applied to the item as it is. Their
// attempts may stay on their way while others take the item's lock, release it
// without a change, and write.

type blindKind int8

const (
	eventWrites blindKind = iota
	saveWrites
	createWrites
	applyWrites
)

const (
	ourEvent   = 5
	ourVersion = 1 // that a save is bound to
	maxBlind   = 2
	maxApplied = 3 // the guard of the callers' own: an expression is applied below it
)

// blindItem is the item.
type blindItem struct {
	exists, stub, locked bool
	version, event       int8
	ring                 ids8
}

// blindCall is one call.
type blindCall struct {
	phase   phase // fresh, holding (may send or end), ending (waits for an answer), done
	unsure  bool  // the present try had an attempt without an answer
	tries   int8  // attempts
	late    int8  // attempts that are still on their way
	open    bool  // what Doubt remembers
	seen    ids8
	base    ids8 // the ring that a save demands and extends; none: it demands none and starts a new one
	applied bool
	lost    bool // it was told that nothing was written
}

type blindWorld struct {
	item   blindItem
	events int8 // writes of others that are still to come
	next   int8 // id of their next write
	who    [maxBlind]blindCall
}

// blindRules are the bounds of a search and the rules that a mutant breaks.
type blindRules struct {
	kind    blindKind
	callers int
	tries   int8
	events  int8
	start   []blindItem

	// Mutants.
	forgetsAtEnd  bool // the end of waiting says what waiting says: nothing was written
	forgetsTries  bool // a try knows its own attempts only
	forgetsRepeat bool // an attempt without an answer is forgotten once another was refused
	guess         bool // ring out of sight is taken for not applied
	waitsOn       bool // a creation in doubt settles the doubt at a lock
	looksLate     bool // a ring that was seen when something was sent already is taken for one from before
	repeats       bool // an expression is sent again after an attempt without an answer
}

type blindModel struct {
	blindRules
	given verdicts
}

func (m *blindModel) starts() (all []blindWorld) {
	for _, it := range m.start {
		all = append(all, blindWorld{item: it, events: m.events, next: 50})
	}
	return all
}

// write applies the write of call i where its condition holds.
func (w *blindWorld) write(m *blindModel, i int) (applied bool, wrong string) {
	it, c := &w.item, &w.who[i]
	id := int8(i + 1)
	switch {
	case it.locked:
		return false, ""
	case m.kind == eventWrites && (!it.exists || it.event >= ourEvent+int8(i)),
		m.kind == saveWrites && (!it.exists || it.version != ourVersion || c.base != ids8{} && c.base != it.ring),
		m.kind == createWrites && it.exists && !it.stub,
		m.kind == applyWrites && (!it.exists || it.stub || it.version >= maxApplied):
		return false, ""
	case m.kind == createWrites && c.applied: // the stated limit: the key is free again
		return false, ""
	case c.applied:
		return true, "a write is applied twice"
	case c.lost:
		return true, "a write is applied after its call was told that nothing was written"
	}
	c.applied = true
	it.exists, it.stub, it.ring = true, false, c.base.push(id)
	if it.version++; m.kind == eventWrites {
		it.event = ourEvent + int8(i)
	}
	return true, ""
}

// others hold the lock and change nothing, or write.
func (m *blindModel) others(w blindWorld, out emit[blindWorld]) {
	on := w
	switch it := &on.item; {
	case it.locked && it.stub:
		*it = blindItem{}
		out("others", "release the stub", on, "")
	case it.locked:
		it.locked = false
		out("others", "release the item", on, "")
	case it.exists:
		it.locked = true
		out("others", "lock the item", on, "")
	default:
		*it = blindItem{exists: true, stub: true, locked: true}
		out("others", "lock a key without an item", on, "")
	}
	if w.events == 0 || w.item.locked && !w.item.stub {
		return
	}
	w.events--
	id := w.next
	w.next++
	for _, event := range []int8{w.item.event, ourEvent - 2, ourEvent + maxBlind} {
		if event < w.item.event {
			continue
		}
		for _, pushes := range []int{0, 1, len(ids8{})} {
			on = w
			it := &on.item
			it.exists, it.stub, it.locked, it.event = true, false, false, event
			if w.item.stub || !w.item.exists {
				it.version, it.ring = 0, ids8{}
			}
			it.version += int8(max(pushes, 1))
			for range pushes {
				it.ring = it.ring.push(id)
			}
			what := "write after reading"
			if pushes == 0 { // an event, or a save
				it.ring, what = ids8{id}, "write blindly"
			}
			out("others", what, on, "")
		}
	}
	if w.item.exists && !w.item.locked && m.kind != saveWrites && m.kind != eventWrites {
		on = w
		on.item = blindItem{}
		out("others", "delete the item", on, "")
	}
}

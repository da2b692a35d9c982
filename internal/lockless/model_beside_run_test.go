package lockless

import (
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
)

// besideModel is a search.
type besideModel struct {
	besideRules
	given verdicts
}

func (m *besideModel) next(w besideWorld, out emit[besideWorld]) {
	if w.clock < m.clocks {
		on := w
		on.clock++
		out("time", "an epoch passes", on, "")
	}
	m.rowsEnd(w, out)
	if w.item.writes < m.writes {
		m.others(w, out)
	}
	for i := range w.who {
		m.call(w, i, out)
	}
}

// rowsEnd is that a row goes, of its own, when it may.
func (m *besideModel) rowsEnd(w besideWorld, out emit[besideWorld]) {
	lives := int8(3)
	if m.endsEarly {
		lives = 1
	}
	if row := w.row[0]; row > 0 && row+lives <= w.clock {
		on := w
		on.row[0] = 0
		out("time", "the row ends", on, "")
	}
}

// others write under ids of their own, and move what is there.
func (m *besideModel) others(w besideWorld, out emit[besideWorld]) {
	clocks := []int8{w.clock}
	if m.slow != [maxBeside]bool{} {
		clocks = append(clocks, max(w.clock-1, 1))
	}
	for _, epoch := range clocks {
		for _, bit := range []int8{otherID, anotherD} {
			if w.item.has(bit) {
				continue
			}
			move := m.after(besideWrite{item: w.item, bit: bit, epoch: epoch})
			on := w
			if move.goes {
				on.put(move.rows)
				out("others", "put rows, and die", on, "")
			}
			if m.putsLater {
				on = w
			}
			on.item = move.to
			on.item.writes = w.item.writes + 1
			out("others", "write under an id", on, "")
		}
	}
}

// put puts rows of those epochs.
func (w *besideWorld) put(rows [3]int8) {
	for i, epoch := range rows {
		w.row[i] = max(w.row[i], epoch)
	}
}

// epoch is the one by the clock of a call.
func (m *besideModel) epoch(w *besideWorld, i int) int8 {
	if m.slow[i] {
		return max(w.clock-1, 1)
	}
	return w.clock
}

// call is what call i can do.
func (m *besideModel) call(w besideWorld, i int, out emit[besideWorld]) {
	name, c := ids[i+1], &w.who[i]
	if c.late.sent {
		on := w
		on.who[i].late = besideTry{}
		done, wrong := on.write(&m.besideRules, i, c.late)
		out(name, "an attempt arrives late"+yes(done), on, wrong)
	}
	switch c.phase {
	case notYet:
		m.ahead(w, i, out)
		on := w
		c := &on.who[i]
		c.open, c.mine = false, false
		c.runs++
		c.before = m.epoch(&on, i)
		if m.asksFirst {
			c.asked, c.under, c.inRow = true, on.item, m.inRow(on.item, on.row[0], c.before)
		}
		if m.reads[i] {
			m.sees(&on, i, "it comes, and reads", out)
			return
		}
		c.try = besideTry{run: c.runs, made: on.clock, first: c.before, epoch: c.before}
		c.phase = ready
		out(name, "it comes", on, "")
	case consulting:
		m.looks(w, i, out)
	case ready:
		on := w
		on.who[i].phase = awaiting
		out(name, "sends an attempt", on, "")
		on = w
		m.end(&on, i, "its context ends", out)
	case awaiting:
		m.answer(w, i, out)
	}
}

// ahead is that the process of call i sees a mark, and that the call asks for the row, before
// it sees the item.
func (m *besideModel) ahead(w besideWorld, i int, out emit[besideWorld]) {
	c := &w.who[i]
	seen := c.under != besideItem{}
	switch {
	case !m.early[i] || c.asked && seen:
	case !seen && w.item.rows && (c.asked || !m.marksLater):
		c.under = w.item
		c.under.writes, c.under.present, c.under.past = 0, 0, 0
		out(ids[i+1], "its process sees the mark", w, "")
	case !c.asked && (seen || m.marksLater && w.item.rows):
		of := c.under
		if !seen {
			of = w.item
		}
		c.asked, c.inRow = true, m.inRow(of, w.row[0], m.epoch(&w, i))
		out(ids[i+1], "it asks ahead", w, "")
	}
}

// sees is what call i makes of the item that it sees.
func (m *besideModel) sees(w *besideWorld, i int, what string, out emit[besideWorld]) {
	c := &w.who[i]
	c.image = w.item
	switch {
	case m.old[i] && w.item.rows && !m.oldComeIn: // it takes the mark for a foreign attribute
		m.end(w, i, what+", and refuses the item", out)
	case w.item.has(ourID):
		m.told(w, i, protocol.Committed, what+", and finds the id", out)
	default:
		c.phase = consulting
		out(ids[i+1], what, *w, "")
	}
}

// looks is that call i asks for the row, if one may matter, and then knows what to send. It
// has put the rows of what must go.
func (m *besideModel) looks(w besideWorld, i int, out emit[besideWorld]) {
	c := &w.who[i]
	epoch := m.epoch(&w, i)
	knows := c.asked && (c.under.sameMark(c.image) || m.keepsAnswer || m.asksFirst)
	if !knows {
		c.inRow = false
	}
	if m.beside(c.image, epoch) && !knows && !m.neverAsks && !m.old[i] {
		c.asked, c.under, c.inRow = true, c.image, m.inRow(c.image, w.row[0], epoch)
	}
	if c.inRow {
		m.told(&w, i, protocol.Committed, "it finds the id in a row", out)
		return
	}
	move := m.after(besideWrite{c.image, ourID, epoch, !m.reads[i], m.old[i]})
	try := besideTry{run: c.runs, made: w.clock, first: c.before, seen: c.image, epoch: max(c.image.epoch, epoch), to: move.to}
	switch {
	case move.goes && !m.putsLater:
		w.put(move.rows)
		fallthrough
	case move.goes:
		try.form = moving
	case c.image.epoch > 0 && c.image.epoch < epoch:
		try.form = turning
	case c.image.epoch > 0:
		try.form = atMark
	}
	if m.reads[i] {
		try.form = asRead
	}
	forgets := UnreadOnce{First: int64(c.before), Epoch: int64(try.epoch)}.Forgets()
	if !m.reads[i] && forgets && c.open {
		m.told(&w, i, protocol.Undecided, "the item may have forgotten", out)
		return
	}
	c.try, c.phase, c.image = try, ready, besideItem{}
	out(ids[i+1], "it asks, and knows what to write", w, "")
}

// answer is what can come of the attempt that a call waits for.
func (m *besideModel) answer(w besideWorld, i int, out emit[besideWorld]) {
	name, try := ids[i+1], w.who[i].try
	if !w.who[i].late.sent {
		on := w
		c := &on.who[i]
		c.phase, c.open, c.late = ready, true, try
		c.late.sent = true
		out(name, "gives up waiting for it; it is on its way", on, "")
	}
	on := w
	on.who[i].phase, on.who[i].open = ready, true
	done, wrong := on.write(&m.besideRules, i, try)
	out(name, "it is delivered"+yes(done)+", the answer is lost", on, wrong)

	on = w
	if done, wrong = on.write(&m.besideRules, i, try); done {
		if wrong != "" {
			out(name, "it is answered (applied)", on, wrong)
			return
		}
		m.told(&on, i, protocol.Committed, "it is answered (applied)", out)
		return
	}
	if on.who[i].open && try.form == asRead && !on.item.has(ourID) {
		beyond := on
		m.told(&beyond, i, protocol.Undecided, "it is refused, out of sight", out)
		if on.who[i].mine {
			m.told(&on, i, protocol.Committed, "it is refused, by its own work", out)
			return
		}
		on.who[i].open = false
	}
	m.sees(&on, i, "it is refused, and shows the item", out)
	on = w
	m.end(&on, i, "it is refused by its caller's condition", out)
}

// end ends a call without having been applied, as it knows.
func (m *besideModel) end(w *besideWorld, i int, what string, out emit[besideWorld]) {
	m.told(w, i, (&Doubt{open: w.who[i].open}).End(), what, out)
}

// told gives a call its verdict. One without comes again.
func (m *besideModel) told(w *besideWorld, i int, v protocol.Verdict, what string, out emit[besideWorld]) {
	c := &w.who[i]
	m.given[v]++
	wrong := ""
	switch {
	case v == protocol.Committed && w.first == 0:
		wrong = "the call is told that it is applied, but it is not"
	case v == protocol.Lost && c.mine:
		wrong = "the call is told that nothing was written, but it is"
	}
	late, runs, mine, lost := c.late, c.runs, c.mine, c.lost
	if v == protocol.Lost {
		lost = runs
	}
	*c = besideCall{phase: ended, late: late, runs: runs, mine: mine, lost: lost}
	if v == protocol.Undecided && runs < m.comes {
		c.phase = notYet
	}
	out(ids[i+1], what, *w, wrong)
}

// besideRuns are the searches of the protocol as it is.
func besideRuns() map[string]besideRules {
	base := besideRules{clocks: 2, writes: 3, comes: 1}
	runs := map[string]besideRules{}
	runs["they ask ahead"] = besideRules{clocks: 2, writes: 4, comes: 1, reads: [maxBeside]bool{true, true}, early: [maxBeside]bool{true, false}}
	for name, reads := range map[string][maxBeside]bool{"both read": {true, true}, "one reads": {true, false}, "none reads": {}} {
		r := base
		r.reads = reads
		runs[name] = r
		r.old[1] = true
		runs[name+", one is an old program"] = r
		r.old[1], r.slow[1], r.clocks = false, true, 3
		runs[name+", a slow clock"] = r
	}
	return runs
}

// bounds widens a search for a proof and for a soak.
func (r besideRules) bounds() besideRules {
	switch {
	case soak():
		r.writes, r.comes, r.clocks = 5, 2, r.clocks+1
	case quick():
		r.writes, r.clocks = 2, 2
	}
	return r
}

func runBeside(r besideRules) (searched, verdicts) {
	r.wires, r.moved = map[besideItem]ddb.Item{}, map[besideWrite]besideMove{}
	m := &besideModel{besideRules: r, given: verdicts{}}
	full := besideItem{epoch: 1, present: otherID}
	return search.Actors([]besideWorld{{clock: 1}, {clock: 1, item: full}}, m.next), m.given
}

func TestModelBeside(t *testing.T) {
	runs := besideRuns()
	if quick() { // each kind of reading and each kind of process, and not each with each
		for _, name := range []string{"both read", "one reads, one is an old program", "one reads, a slow clock", "none reads", "none reads, a slow clock"} {
			delete(runs, name)
		}
	}
	for name, r := range runs {
		f, v := runBeside(r.bounds())
		mustHold(t, name, f, v)
	}
}

// TestModelBesideMutants leaves out one rule at a time.
func TestModelBesideMutants(t *testing.T) {
	for _, m := range []struct {
		name, run string
		mutate    func(*besideRules)
	}{
		{"the row is not read", "both read", func(r *besideRules) { r.neverAsks = true }},
		{"the row is not read by one that writes unread", "none reads", func(r *besideRules) { r.neverAsks = true }},
		{"the row is read before the item", "both read", func(r *besideRules) { r.asksFirst = true }},
		{"the row is read under another mark", "none reads", func(r *besideRules) { r.keepsAnswer = true }},
		{"the row that was read ahead is believed under another mark", "they ask ahead", func(r *besideRules) { r.keepsAnswer = true }},
		{"the row is read ahead of the mark", "they ask ahead", func(r *besideRules) { r.marksLater = true }},
		{"an unread write is bound to no mark", "none reads", func(r *besideRules) { r.unbound = true }},
		{"rows are put behind the write", "both read", func(r *besideRules) { r.putsLater = true }},
		{"a move leaves the mark", "none reads", func(r *besideRules) { r.oneMark = true }},
		{"an old program comes in", "both read, one is an old program", func(r *besideRules) { r.oldComeIn = true }},
		{"a row ends early", "both read", func(r *besideRules) { r.endsEarly = true }},
		{"rows are given up early", "both read", func(r *besideRules) { r.forgets = true }},
	} {
		r := besideRuns()[m.run]
		m.mutate(&r)
		f, _ := runBeside(r)
		f.MustFind(t, m.name+", "+m.run)
	}
}

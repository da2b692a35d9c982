package lockless

import (
	"testing"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
)

// onceModel is a search.
type onceModel struct {
	onceRules
	given verdicts
}

func (m *onceModel) next(w onceWorld, out emit[onceWorld]) {
	if w.clock < m.clocks {
		on := w
		on.clock++
		out("time", "an epoch passes", on, "")
	}
	if w.item.writes < m.writes {
		on := w
		on.item.writes++
		out("others", "write without an id", on, "")
		clocks := []int8{w.clock}
		if m.slow != [maxOnce]bool{} {
			clocks = append(clocks, max(w.clock-1, 1))
		}
		for _, epoch := range clocks {
			on = w
			on.item = m.after(w.item, otherOnce, epoch)
			on.item.writes = w.item.writes + 1
			out("others", "write under an id", on, "")
		}
	}
	for i := range w.who {
		m.call(w, i, out)
	}
}

// epoch is the one by the clock of a call.
func (m *onceModel) epoch(w *onceWorld, i int) int8 {
	if m.slow[i] {
		return max(w.clock-1, 1)
	}
	return w.clock
}

// call is what call i can do.
func (m *onceModel) call(w onceWorld, i int, out emit[onceWorld]) {
	name, c := ids[i+1], &w.who[i]
	if c.late.sent {
		on := w
		on.who[i].late = onceTry{}
		if applied, wrong := on.write(&m.onceRules, i, c.late); applied {
			out(name, "an attempt arrives late (applied)", on, wrong)
		} else {
			out(name, "an attempt arrives late (refused)", on, "")
		}
	}
	switch c.phase {
	case fresh:
		on := w
		on.who[i].open, on.who[i].mine = false, false
		on.who[i].runs++
		m.look(&on, i, "it comes, and reads", out)
	case holding:
		on := w
		on.who[i].phase = ending
		out(name, "sends an attempt", on, "")
		on = w // its context ends
		m.end(&on, i, out)
	case ending:
		m.answer(w, i, out)
	}
}

// look is what call i makes of the item that it sees.
func (m *onceModel) look(w *onceWorld, i int, what string, out emit[onceWorld]) {
	c := &w.who[i]
	epoch := m.epoch(w, i)
	c.phase = holding
	switch {
	case !m.reads[i] && c.try == (onceTry{}): // it reads nothing, the first time
		c.try = onceTry{epoch: epoch, first: epoch}
	case m.remembers(w.item):
		m.told(w, i, protocol.Committed, what+", and finds the id", out)
		return
	case m.reads[i]:
		c.try = onceTry{read: true, base: w.item.writes, to: m.after(w.item, ourOnce, epoch)}
	default:
		next, _, _ := UnreadOnce{ID: onceIDOf(ourOnce), First: int64(c.try.first), Epoch: int64(c.try.epoch)}.After(onceCore, w.item.wire(), int64(epoch), nil)
		if next.Forgets() && c.open && !m.goesOn {
			m.told(w, i, protocol.Undecided, what+", which may have forgotten", out)
			return
		}
		c.try = onceTry{epoch: int8(next.Epoch), turns: next.Rotates, first: c.try.first}
	}
	c.try.run, c.try.made = c.runs, w.clock
	out(ids[i+1], what, *w, "")
}

// answer is what can come of the attempt that a call waits for.
func (m *onceModel) answer(w onceWorld, i int, out emit[onceWorld]) {
	name, try := ids[i+1], w.who[i].try
	if !w.who[i].late.sent {
		on := w
		c := &on.who[i]
		c.phase, c.open, c.late = holding, true, try
		c.late.sent = true
		out(name, "gives up waiting for it; it is on its way", on, "")
	}
	on := w
	on.who[i].phase, on.who[i].open = holding, true
	applied, wrong := on.write(&m.onceRules, i, try)
	out(name, "it is delivered"+yes(applied)+", the answer is lost", on, wrong)

	on = w
	if applied, wrong = on.write(&m.onceRules, i, try); applied {
		if wrong != "" {
			out(name, "it is answered (applied)", on, wrong)
			return
		}
		m.told(&on, i, protocol.Committed, "it is answered (applied)", out)
		return
	}
	if on.who[i].open && try.read && !m.remembers(on.item) {
		// The ring tells, or others have pushed what it would tell by out of sight.
		beyond := on
		m.told(&beyond, i, protocol.Undecided, "it is refused, out of sight", out)
		if on.who[i].mine {
			m.told(&on, i, protocol.Committed, "it is refused, by its own work", out)
			return
		}
		on.who[i].open = false
	}
	m.look(&on, i, "it is refused, and shows the item", out)
	on = w // the caller's own condition, say
	m.end(&on, i, out)
}

// end ends a call without having been applied, as it knows.
func (m *onceModel) end(w *onceWorld, i int, out emit[onceWorld]) {
	m.told(w, i, (&Doubt{open: w.who[i].open}).End(), "it ends", out)
}

// told gives a call its verdict. One without comes again.
func (m *onceModel) told(w *onceWorld, i int, v protocol.Verdict, what string, out emit[onceWorld]) {
	c := &w.who[i]
	m.given[v]++
	wrong := ""
	switch {
	case v == protocol.Committed && w.first == 0:
		wrong = "the call is told that it is applied, but it is not"
	case v == protocol.Lost && c.mine:
		wrong = "the call is told that nothing was written, but it is"
	}
	c.phase, c.try = done, onceTry{}
	if v == protocol.Lost {
		c.lost = c.runs
	}
	if v == protocol.Undecided && c.runs < m.comes {
		c.phase = fresh
	}
	out(ids[i+1], what, *w, wrong)
}

// onceRuns are the searches of the protocol as it is.
func onceRuns() map[string]onceRules {
	base := onceRules{clocks: 3, writes: 3, comes: 1}
	runs := map[string]onceRules{}
	for name, reads := range map[string][maxOnce]bool{"both read": {true, true}, "one reads": {true, false}, "none reads": {}} {
		r := base
		r.reads = reads
		runs[name] = r
		r.slow[1] = true
		runs[name+", a slow clock"] = r
	}
	return runs
}

// bounds widens a search for a proof and for a soak, and narrows it for a short run.
func (r onceRules) bounds() onceRules {
	switch {
	case soak():
		r.writes, r.comes = 4, 2
	case quick():
		r.writes = 2
	default:
		r.writes = 3
	}
	return r
}

func runOnce(r onceRules) (searched, verdicts) {
	r.asked, r.made = map[onceItem]bool{}, map[onceWrite]onceItem{}
	m := &onceModel{onceRules: r, given: verdicts{}}
	return search.Actors([]onceWorld{{clock: 1}, {clock: 1, item: onceItem{epoch: 1, present: otherOnce}}}, m.next), m.given
}

func TestModelOnce(t *testing.T) {
	runs := onceRuns()
	if quick() { // each kind of reading and each kind of clock, and not each with each
		for _, name := range []string{"both read, a slow clock", "one reads", "none reads, a slow clock"} {
			delete(runs, name)
		}
	}
	for name, r := range runs {
		f, v := runOnce(r.bounds())
		mustHold(t, name, f, v)
	}
}

// TestModelOnceMutants leaves out one rule at a time.
func TestModelOnceMutants(t *testing.T) {
	for _, m := range []struct {
		name   string
		runs   []string
		mutate func(*onceRules)
	}{
		{"the past set is forgotten", []string{"both read", "one reads", "none reads"}, func(r *onceRules) { r.forgetsPast = true }},
		{"a slow clock rotates back", []string{"both read, a slow clock", "one reads, a slow clock"}, func(r *onceRules) { r.rotatesBack = true }},
		{"nobody asks for the id", []string{"both read", "one reads", "none reads"}, func(r *onceRules) { r.neverAsks = true }},
		{"a blind write is bound to no epoch", []string{"one reads", "none reads"}, func(r *onceRules) { r.repeatsFreely = true }},
		{"a call in doubt goes on", []string{"one reads", "none reads"}, func(r *onceRules) { r.goesOn = true }},
		{"a rotation drops the present ids", []string{"both read", "one reads", "none reads"}, func(r *onceRules) { r.dropsPresent = true }},
	} {
		for _, run := range m.runs {
			r := onceRuns()[run]
			m.mutate(&r)
			f, _ := runOnce(r)
			f.MustFind(t, m.name+", "+run)
		}
	}
}

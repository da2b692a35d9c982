package lockless

import (
	"testing"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
	"github.com/dynahold/dynahold/internal/stored"
)

func (m *blindModel) next(w blindWorld, out emit[blindWorld]) {
	m.others(w, out)
	for i := range m.callers {
		c := &w.who[i]
		name := ids[i+1]
		if on := w; c.late > 0 {
			on.who[i].late--
			if applied, wrong := on.write(m, i); applied {
				out(name, "an attempt arrives late (applied)", on, wrong)
			}
		}
		switch c.phase {
		case fresh, holding:
			if on := w; m.kind == saveWrites && w.item.exists && (c.tries == 0 || m.looksLate) {
				d := Doubt{}
				d.Before(w.item.ring.wire())
				on.who[i].seen, on.who[i].base = idsOf(d.ring), ids8{}
				if w.item.version == ourVersion {
					on.who[i].base = w.item.ring
				}
				out(name, "its process sees the item", on, "")
			}
			if on := w; c.tries < m.tries && (m.kind != applyWrites || !c.open || m.repeats) {
				on.who[i].phase = ending
				on.who[i].tries++
				out(name, "sends an attempt", on, "")
			}
			if c.tries > 0 { // its context ends, it may wait no more, or is refused
				on := w
				m.end(&on, i, out)
				if on = w; m.kind == applyWrites && c.open {
					m.told(&on, i, m.traces(&on, i), "it looks for its traces", out)
				}
			}
		case ending:
			m.answer(w, i, out)
		}
	}
}

// answer is what can come of the attempt that a call waits for.
func (m *blindModel) answer(w blindWorld, i int, out emit[blindWorld]) {
	name := ids[i+1]
	on := w
	c := &on.who[i]
	c.phase, c.unsure, c.open = holding, true, true
	c.late++
	out(name, "gives up waiting for it; it is on its way", on, "")
	c.late--
	applied, wrong := on.write(m, i)
	out(name, "it is delivered"+yes(applied)+", the answer is lost", on, wrong)

	on = w
	c = &on.who[i]
	if applied, wrong = on.write(m, i); applied {
		c.phase = done
		m.given[protocol.Committed]++
		out(name, "it is answered (applied)", on, wrong)
		return
	}
	v, final := m.judge(&on, i)
	if c.unsure = false; !final { // only a lock stands in the way
		c.phase = holding
		if c.tries >= m.tries {
			m.end(&on, i, out)
			return
		}
		out(name, "it is answered (refused), and waits", on, "")
		return
	}
	m.told(&on, i, v, "it is answered (refused)", out)
}

// judge lets the library judge the image that refused an attempt.
func (m *blindModel) judge(w *blindWorld, i int) (v protocol.Verdict, final bool) {
	it, c := w.item, &w.who[i]
	id := writeID(int8(i + 1))
	d := Doubt{open: c.open, ring: c.seen.wire()}
	if m.forgetsTries {
		d.open = c.unsure
	}
	if m.forgetsRepeat {
		d.open = false
	}
	ring := it.ring.wire()
	switch {
	case m.kind == eventWrites:
		v, final = d.Event(id, ring, int(it.event)-int(ourEvent+int8(i)))
	case m.kind == saveWrites:
		v, final = d.Save(id, ring, !it.exists, int64(it.version), ourVersion)
	case m.kind == applyWrites:
		v = d.ByID(id, ring)
		final = v != protocol.Lost || !it.locked
	case m.waitsOn && it.locked && it.stub:
		v, final, d.open = protocol.Lost, false, false
	default:
		v = d.ByID(id, ring)
		final = v != protocol.Lost || !it.stub
	}
	if v == protocol.Undecided && m.guess {
		v = protocol.Lost
	}
	c.open, c.seen = d.open, idsOf(d.ring)
	return v, final
}

// idsOf is the opposite of wire.
func idsOf(ring []byte) (ids ids8) {
	for n := 0; n+stored.RingID <= len(ring); n += stored.RingID {
		ids[n/stored.RingID] = int8(ring[n])
	}
	return ids
}

// traces is what a read tells after an answer was lost.
func (m *blindModel) traces(w *blindWorld, i int) protocol.Verdict {
	v := protocol.RingVerdict(writeID(int8(i+1)), nil, w.item.ring.wire())
	if v == protocol.Undecided && m.guess {
		v = protocol.Lost
	}
	return v
}

// end ends a call without another answer.
func (m *blindModel) end(w *blindWorld, i int, out emit[blindWorld]) {
	c := &w.who[i]
	v := (&Doubt{open: c.open}).End()
	if m.forgetsAtEnd && !c.unsure {
		v = protocol.Lost
	}
	m.told(w, i, v, "it ends without an answer", out)
}

// told gives a call its verdict.
func (m *blindModel) told(w *blindWorld, i int, v protocol.Verdict, what string, out emit[blindWorld]) {
	c := &w.who[i]
	m.given[v]++
	wrong := ""
	switch {
	case v == protocol.Committed && !c.applied:
		wrong = "the call is told that it is applied, but it is not"
	case v == protocol.Lost && c.applied:
		wrong = "the call is told that nothing was written, but it is"
	}
	*c = blindCall{phase: done, late: c.late, base: c.base, applied: c.applied, lost: v == protocol.Lost}
	out(ids[i+1], what, *w, wrong)
}

// blindRuns are the searches of the protocol as it is.
func blindRuns() map[string]blindRules {
	item := []blindItem{{exists: true, version: ourVersion, event: 1, ring: ids8{40}}}
	return map[string]blindRules{
		"events":      {kind: eventWrites, callers: 2, tries: 3, events: 1, start: item},
		"saves":       {kind: saveWrites, callers: 2, tries: 3, events: 2, start: append(item, blindItem{exists: true, version: ourVersion - 1, event: 1, ring: ids8{40}})},
		"expressions": {kind: applyWrites, callers: 2, tries: 3, events: 2, start: item},
		"creations":   {kind: createWrites, callers: 2, tries: 3, events: 2, start: []blindItem{{}, {exists: true, stub: true, locked: true}}},
	}
}

// bounds widens a search for a soak and narrows it for a short run.
func (r blindRules) bounds() blindRules {
	switch {
	case soak():
		r.events, r.tries = 3, 4
	case quick():
		r.callers = 1
	}
	return r
}

func runBlind(r blindRules) (searched, verdicts) {
	m := &blindModel{blindRules: r, given: verdicts{}}
	return search.Actors(m.starts(), m.next), m.given
}

func TestModelBlind(t *testing.T) {
	for name, r := range blindRuns() {
		f, v := runBlind(r.bounds())
		mustHold(t, name, f, v)
		if v[protocol.Lost] == 0 {
			t.Errorf("%s: nothing is ever refused", name)
		}
	}
}

// TestModelBlindMutants leaves out one rule at a time.
func TestModelBlindMutants(t *testing.T) {
	for _, m := range []struct {
		name   string
		runs   []string
		mutate func(*blindRules)
	}{
		{"a call that ends by waiting forgets what had no answer", []string{"events", "saves"}, func(r *blindRules) { r.forgetsAtEnd = true }},
		{"a try knows its own attempts only", []string{"events", "saves"}, func(r *blindRules) { r.forgetsTries = true }},
		{"a refusal is taken at its word", []string{"events", "saves", "creations"}, func(r *blindRules) { r.forgetsRepeat = true }},
		{"a ring out of sight is taken for not applied", []string{"events", "saves", "creations", "expressions"}, func(r *blindRules) { r.guess = true }},
		{"an expression is sent again", []string{"expressions"}, func(r *blindRules) { r.repeats = true }},
		{"a ring seen late is taken for one from before", []string{"saves"}, func(r *blindRules) { r.looksLate = true }},
		{"a creation that waits forgets what had no answer", []string{"creations"}, func(r *blindRules) { r.waitsOn = true }},
	} {
		for _, run := range m.runs {
			r := blindRuns()[run]
			r.callers = 1
			m.mutate(&r)
			f, _ := runBlind(r)
			f.MustFind(t, m.name+", "+run)
		}
	}
}

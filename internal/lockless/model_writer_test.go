package lockless

import "github.com/dynahold/dynahold/internal/protocol"

// ringModel is one search over optimistic writers.
type ringModel struct {
	ringRules
	given     verdicts
	testified verdicts // of what writers' processes have seen
}

func (m *ringModel) starts() (all []ringWorld) {
	for _, it := range m.start {
		all = append(all, ringWorld{item: it, events: m.events, next: 50})
	}
	return all
}

func (m *ringModel) next(w ringWorld, out emit[ringWorld]) {
	forgetting := func(who, what string, to ringWorld, wrong string) { out(who, what, m.forget(to), wrong) }
	m.others(w, forgetting)
	for i := range m.writers {
		m.late(w, i, forgetting)
		m.testify(w, i, forgetting)
		switch w.who[i].phase {
		case fresh:
			if i > 0 && w.who[i-1].phase == fresh {
				break // they are alike: in order
			}
			on := w
			m.begin(&on, i, w.item)
			out(ids[i+1], "reads", on, "")
		case holding:
			m.choose(w, i, forgetting)
		case ending:
			m.answer(w, i, forgetting)
		}
	}
}

// forget drops what cannot matter any more.
func (m *ringModel) forget(w ringWorld) ringWorld {
	for i := range w.who {
		wr := &w.who[i]
		if wr.phase == ending && !wr.waiting && wr.tries >= m.tries {
			wr.phase = done // it gives up
		}
		for n := range wr.edits {
			if wr.edits[n].late == 0 && (wr.phase == done || n < int(wr.nth)) {
				wr.edits[n] = edit{}
			}
		}
		if wr.phase == done {
			*wr = writer{phase: done, edits: wr.edits}
		}
	}
	return w
}

// begin starts an edit from an image.
func (m *ringModel) begin(w *ringWorld, i int, image ringItem) {
	wr := &w.who[i]
	wr.waiting, wr.unsure, wr.tries = false, false, 0
	wr.phase = holding
	wr.edits[wr.nth] = edit{base: image}
	if image.locked {
		wr.phase = fresh // it waits, and reads again
	} else if !image.exists && !m.creates {
		wr.phase = done
	}
}

// choose sends the write of an edit.
func (m *ringModel) choose(w ringWorld, i int, out emit[ringWorld]) {
	wr := &w.who[i]
	wr.phase, wr.waiting, wr.tries = ending, true, 1
	out(ids[i+1], "sends a write", w, "")
	if e := &wr.edits[wr.nth]; m.removes && e.base.exists {
		e.remove = true
		out(ids[i+1], "sends a delete", w, "")
	}
}

// answer is what can come of the attempt that a writer waits for.
func (m *ringModel) answer(w ringWorld, i int, out emit[ringWorld]) {
	wr := &w.who[i]
	name, nth, try := ids[i+1], wr.nth, wr.tries
	if !wr.waiting {
		wr.waiting = true
		wr.tries++
		out(name, "repeats it", w, "")
		return
	}
	e := &wr.edits[nth]
	if on := w; !wr.copied {
		on.who[i].copied = true
		if applied, wrong := on.write(&m.ringRules, i, nth, try); applied {
			out(name, "a copy of it is delivered before (applied)", on, wrong)
		}
	}
	wr.waiting, wr.copied = false, false
	before := e.late
	e.late = min(e.late+1, m.copies) // a copy may always come later, or never
	lost := w
	lost.who[i].unsure = true
	if m.copies > 0 {
		out(name, "gives up waiting for it; it is on its way", lost, "")
	}
	if m.onceEach {
		e.late = before
	}
	applied, wrong := w.write(&m.ringRules, i, nth, try)
	lost = w
	lost.who[i].unsure = true
	out(name, "it is delivered"+yes(applied)+", the answer is lost", lost, wrong)
	if wr.phase = done; applied {
		out(name, "it is answered (applied)", w, wrong)
		return
	}
	v := m.verdict(e.base, w.item, writeID(m.id(i, nth, try)), !wr.unsure)
	if m.believes && v == protocol.Undecided && !wr.unsure {
		v = protocol.Lost
	}
	m.given[v]++
	switch {
	case v == protocol.Committed && !e.applied:
		wrong = "the verdict is committed, but the write is not applied"
	case v == protocol.Lost && e.applied && !e.gone:
		wrong = "the verdict is not applied, but the write is"
	}
	if v == protocol.Lost && !wr.unsure && w.item.locked && e.base.exists && e.base.ring == w.item.ring && e.base.version == w.item.version && !m.noMark {
		w.item.ring = w.item.ring.push(firstMark + int8(10*i) + wr.nth)
	}
	if e.lost = v == protocol.Lost; !e.lost || int(nth)+1 >= m.edits {
		out(name, "it is answered (refused)", w, wrong)
		return
	}
	wr.nth++
	m.begin(&w, i, w.item)
	out(name, "it is answered (refused), and begins again from the image", w, wrong)
}

func (m *ringModel) verdict(base, now ringItem, id protocol.WriteID, clean bool) protocol.Verdict {
	if m.judge != nil {
		return m.judge(base, now, id, clean)
	}
	return m.rmwVerdict(base, now, id, clean)
}

// late delivers copies that nobody waits for any more. What is refused might
// as well have stayed on its way.
func (m *ringModel) late(w ringWorld, i int, out emit[ringWorld]) {
	for nth := range w.who[i].edits {
		if on := w; on.who[i].edits[nth].late > 0 {
			on.who[i].edits[nth].late--
			if applied, wrong := on.write(&m.ringRules, i, int8(nth), 1); applied {
				out(ids[i+1], "a late copy arrives (applied)", on, wrong)
			}
		}
	}
}

// testify lets a writer's process see the item as it is, by whichever of its callers.
// What it concludes holds from then on, whenever the writer asks for it.
func (m *ringModel) testify(w ringWorld, i int, out emit[ringWorld]) {
	wr := &w.who[i]
	if !w.item.exists || wr.phase != holding && wr.phase != ending {
		return
	}
	e := &wr.edits[wr.nth]
	if len(e.base.ring.wire()) == 0 && wr.phase == holding {
		return // there is nothing yet that an image could show
	}
	testimony := m.testimony
	if testimony == nil {
		testimony = protocol.Testimony
	}
	wrong := ""
	switch testimony(writeID(m.id(i, wr.nth, wr.tries)), e.base.ring.wire(), w.item.ring.wire()) {
	case protocol.Committed:
		m.testified[protocol.Committed]++
		if e.applied {
			return // which the search goes on with in any case
		}
		wrong = "the process testifies for a write that is not applied"
	case protocol.Lost:
		m.testified[protocol.Lost]++
		if e.lost {
			return
		}
		if e.applied {
			wrong = "the process testifies against a write that is applied"
		}
		e.lost = true
	default:
		return
	}
	out(ids[i+1], "its process sees the item", w, wrong)
}

package protocol

// The item lock, seen from those who use it: acquirers, who send, lose answers
// and repeat; and everybody else.

// lockModel is one search: its rules, and what it counted.
type lockModel struct {
	lockRules
	given verdicts
}

func (m *lockModel) starts() (all []lockWorld) {
	for _, it := range m.start {
		all = append(all, lockWorld{item: it, breaks: m.breaks})
	}
	return all
}

func (m *lockModel) next(w lockWorld, out emit[lockWorld]) {
	forgetting := func(who, what string, to lockWorld, wrong string) { out(who, what, m.forget(to), wrong) }
	m.others(w, forgetting)
	for i := range m.acquirers {
		m.late(w, i, forgetting)
		switch w.who[i].phase {
		case fresh:
			if i == 0 || w.who[i-1].phase != fresh { // they are alike: in order
				m.taking(w, i, forgetting)
			}
		case taking:
			m.taking(w, i, forgetting)
		case holding:
			m.holding(w, i, forgetting)
		case ending:
			m.ending(w, i, forgetting)
		}
	}
}

// taking sends an acquire with new bytes.
func (m *lockModel) taking(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	if m.oneID && a.unsure && a.sent != w.now {
		m.sendTake(w, i, out) // with the bytes of the attempt that had no answer
	}
	a.sent = w.now
	m.sendTake(w, i, out)
}

// sendTake sends an acquire, which is delivered at once or left on its way.
func (m *lockModel) sendTake(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	a.phase = taking
	a.tries++
	name, what, req := ids[i+1], "acquire", copies{n: 1, at: a.sent, stub: a.stub}
	if a.stub {
		what = "stub"
	}
	if !m.oneID {
		req.try = a.tries
	}
	before := a.lateTake
	for _, late := range before.and(req, m.takeCopies) {
		on := w
		on.who[i].lateTake, on.who[i].unsure = late, true
		if m.takeCopies > 0 {
			out(name, what+" is sent, no answer", on, "")
		}
		if m.onceEach {
			on.who[i].lateTake = before
		}
		took := on.take(&m.lockRules, i, req)
		out(name, what+" is delivered"+yes(took)+", the answer is lost", on, "")
		m.answered(&on, i, took)
		out(name, what+" is answered"+yes(took), on, "")
	}
}

// answered is what an acquirer does with the answer to its acquire.
func (m *lockModel) answered(w *lockWorld, i int, took bool) {
	a, it := &w.who[i], &w.item
	switch {
	case took || it.by == int8(i+1):
		*a = acquirer{phase: holding, token: it.held, try: it.try, until: it.time, fromStub: it.stub, lateTake: a.lateTake}
	case a.stub: // the item came into being meanwhile
		a.stub, a.unsure = false, false
	case !it.exists && m.upsert:
		a.stub, a.unsure = true, false
	case !it.exists || it.stub && !m.upsert:
		a.phase = done
	default:
		a.unsure = false // held by somebody else: a new try later
	}
}

func (m *lockModel) holding(w lockWorld, i int, out emit[lockWorld]) {
	name := ids[i+1]
	if until := w.now + 2*lease; m.extend && w.who[i].until < until {
		for _, late := range m.lateExtensions(w.who[i].lateExt, until) {
			on := w
			on.who[i].lateExt = late
			if m.lateExtend {
				out(name, "extend is sent, no answer", on, "")
			}
			applied := on.stretch(&m.lockRules, i, until)
			out(name, "extend is delivered"+yes(applied)+", the answer is lost", on, "")
			if applied {
				on.who[i].until = until
				out(name, "extend is answered (applied)", on, "")
			}
		}
	}
	for _, op := range m.ops {
		if op == remove && w.who[i].fromStub {
			continue // a stub is given back instead
		}
		on := w
		a := &on.who[i]
		a.phase, a.op, a.now, a.waiting, a.unsure, a.tries = ending, op, w.now, true, false, 1
		out(name, "sends "+opNames[op], on, "")
	}
}

func (m *lockModel) ending(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	name, what := ids[i+1], opNames[a.op]
	if !a.waiting {
		if a.tries < m.tries {
			a.waiting = true
			a.tries++
			if m.freshNow {
				a.now = w.now
			}
			out(name, "repeats "+what, w, "")
		}
		return
	}
	before := a.lateOp
	for _, late := range before.and(copies{n: 1, at: a.now}, m.copies) {
		on := w
		a := &on.who[i]
		a.waiting, a.lateOp = false, late
		lost := on
		lost.who[i].unsure = true
		if m.copies > 0 {
			out(name, "gives up waiting for a "+what+" that is on its way", lost, "")
		}
		if m.onceEach {
			a.lateOp = before
		}
		applied, wrong := on.end(&m.lockRules, i, a.now)
		lost = on
		lost.who[i].unsure = true
		out(name, what+" is delivered"+yes(applied)+", the answer is lost", lost, wrong)
		if a.phase = done; applied && m.resent {
			a.verdict, wrong = m.verdict(&on, i)
		} else if applied {
			a.verdict = Committed
		} else {
			a.verdict, wrong = m.verdict(&on, i)
		}
		out(name, what+" is answered"+yes(applied), on, wrong)
	}
}

// lateExtensions are the extensions that may be on their way after one more is
// sent.
func (m *lockModel) lateExtensions(c copies, until int8) []copies {
	if !m.lateExtend {
		return []copies{c}
	}
	return c.and(copies{n: 1, at: until}, 1)
}

// late delivers requests that nobody waits for any more. What is refused might
// as well have stayed on its way.
func (m *lockModel) late(w lockWorld, i int, out emit[lockWorld]) {
	name := ids[i+1]
	if on := w; on.who[i].lateTake.n > 0 {
		c := &on.who[i].lateTake
		c.n--
		if on.take(&m.lockRules, i, *c) {
			out(name, "a late acquire arrives (applied)", on, "")
		}
	}
	if on := w; on.who[i].lateOp.n > 0 {
		on.who[i].lateOp.n--
		if applied, wrong := on.end(&m.lockRules, i, on.who[i].lateOp.at); applied {
			out(name, "a late "+opNames[w.who[i].op]+" arrives (applied)", on, wrong)
		}
	}
	if on := w; on.who[i].lateExt.n > 0 {
		on.who[i].lateExt.n--
		if on.stretch(&m.lockRules, i, on.who[i].lateExt.at) {
			out(name, "a late extend arrives (applied)", on, "")
		}
	}
}

func yes(applied bool) string {
	if applied {
		return " (applied)"
	}
	return " (refused)"
}

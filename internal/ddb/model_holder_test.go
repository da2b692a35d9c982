package ddb

import "slices"

// The item lock, seen from those who use it: acquirers, who send, lose answers
// and repeat; and everybody else.

type phase int8

const (
	fresh phase = iota
	taking
	holding
	ending // the write that ends the hold is sent
	done
)

type op int8

const (
	commit op = iota
	remove    // delete the item
	release
)

var opNames = [...]string{"commit", "delete", "release"}

// copies are requests that are on their way though nobody waits for them any
// more: n, with one content.
type copies struct {
	n    int8
	at   int8 // the time in their bytes; of an extension the new lockTime
	stub bool
}

// and adds a copy. Only copies of one content are kept: which, is a choice.
func (c copies) and(at int8, stub bool, most int8) []copies {
	more := copies{1, at, stub}
	switch {
	case most == 0:
		return []copies{{}}
	case c.n == 0:
		return []copies{more}
	case c.at == at && c.stub == stub:
		more.n = min(c.n+1, most)
		return []copies{more}
	}
	return []copies{c, more}
}

// acquirer is one acquisition with its hold.
type acquirer struct {
	phase   phase
	waiting bool // an attempt is sent, and neither delivered nor given up
	unsure  bool // an attempt of the present request ended without an answer
	tries   int8 // attempts of the present request

	stub     bool // the present acquire makes a stub
	sent     int8 // the time in the bytes of the present acquire
	lateTake copies

	token    token
	until    int8 // the holder's deadline
	fromStub bool
	op       op
	now      int8 // :now in the bytes of the present write
	lateOp   copies
	lateExt  copies

	// The truth, which no acquirer sees.
	applied bool // the write that ends the hold
	stale   bool // others ended this hold, or wrote since its read
	over    bool // the life of the item that was read is over
	broken  bool // by an operator
	verdict Verdict
}

// removes reports whether the write that ends the hold deletes the item.
func (a *acquirer) removes() bool { return a.op == remove || a.op == release && a.fromStub }

func (a *acquirer) tidy() {
	for _, c := range []*copies{&a.lateTake, &a.lateOp, &a.lateExt} {
		if c.n == 0 {
			*c = copies{}
		}
	}
}

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

// forget drops what cannot matter any more, so that worlds which differ in
// nothing else count as one.
func (m *lockModel) forget(w lockWorld) lockWorld {
	for i := range w.who {
		a := &w.who[i]
		a.tidy()
		if a.phase == taking && a.tries >= m.takes || a.phase == ending && !a.waiting && a.tries >= m.tries {
			a.phase = done // it gives up
		}
		switch {
		case a.phase == taking && !a.unsure:
			a.sent = 0
		case a.phase == done && a.lateOp.n == 0 && a.lateExt.n == 0:
			*a = acquirer{phase: done, lateTake: a.lateTake}
		case a.phase == done:
			a.unsure, a.tries, a.until, a.over, a.broken = false, 0, 0, false, false
			a.stale = a.stale && !a.applied
			if a.verdict == Committed {
				a.verdict = Undecided
			}
		case a.phase >= holding && !a.fromStub && (a.phase == ending && a.op != remove || !slices.Contains(m.ops, remove)):
			a.over, a.broken = false, false
			if !m.extend {
				a.until = 0
			}
		}
	}
	return w
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

// taking sends an acquire: with the bytes of the attempt before, if that had
// no answer, or with new ones.
func (m *lockModel) taking(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	if a.unsure && a.sent != w.now {
		m.sendTake(w, i, out)
	}
	a.sent = w.now
	m.sendTake(w, i, out)
}

// sendTake sends an acquire, which is delivered at once or left on its way.
func (m *lockModel) sendTake(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	name, what, sent, stub := ids[i+1], "acquire", a.sent, a.stub
	if stub {
		what = "stub"
	}
	a.phase = taking
	a.tries++
	for _, late := range a.lateTake.and(sent, stub, m.ghosts) {
		on := w
		a := &on.who[i]
		a.lateTake, a.unsure = late, true
		if m.ghosts > 0 {
			out(name, what+" is sent, no answer", on, "")
		}
		took := on.take(&m.lockRules, i, sent, stub)
		out(name, what+" is delivered"+yes(took)+", the answer is lost", on, "")
		m.answered(&on, i, took)
		out(name, what+" is answered"+yes(took), on, "")
	}
}

// answered is what an acquirer does with the answer to its acquire.
func (m *lockModel) answered(w *lockWorld, i int, took bool) {
	a, it := &w.who[i], &w.item
	switch {
	case took || it.by == int8(i+1) && !m.freeOnRefusal:
		*a = acquirer{phase: holding, token: it.held, until: it.time, fromStub: it.stub, lateTake: a.lateTake}
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
	if until := w.now + 2*lease; m.extend && w.who[i].lateExt.n == 0 && w.who[i].until < until && until <= m.ticks {
		on := w
		on.who[i].lateExt = copies{1, until, false}
		out(name, "sends extend", on, "")
	}
	if w.who[i].lateExt.n > 0 && !m.lateExtend {
		return
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
	for _, late := range a.lateOp.and(a.now, false, m.copies) {
		on := w
		a := &on.who[i]
		a.waiting, a.lateOp = false, late
		lost := on
		lost.who[i].unsure = true
		if m.copies > 0 {
			out(name, "gives up waiting for a "+what+" that is on its way", lost, "")
		}
		applied, wrong := on.end(&m.lockRules, i, a.now)
		lost = on
		lost.who[i].unsure = true
		out(name, what+" is delivered"+yes(applied)+", the answer is lost", lost, wrong)
		if a.phase = done; applied {
			a.verdict = Committed
		} else {
			a.verdict, wrong = m.verdict(&on, i)
		}
		out(name, what+" is answered"+yes(applied), on, wrong)
	}
}

// late delivers requests that nobody waits for any more. What is refused might
// as well have stayed on its way.
func (m *lockModel) late(w lockWorld, i int, out emit[lockWorld]) {
	name := ids[i+1]
	if on := w; on.who[i].lateTake.n > 0 {
		c := &on.who[i].lateTake
		c.n--
		if on.take(&m.lockRules, i, c.at, c.stub) {
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
		until := on.who[i].lateExt.at
		on.who[i].lateExt.n--
		if applied := on.stretch(&m.lockRules, i, until); applied {
			out(name, "an extend arrives (applied), no answer", on, "")
			if on.who[i].phase == holding {
				on.who[i].until = until
				out(name, "an extend is answered (applied)", on, "")
			}
		}
	}
}

func yes(applied bool) string {
	if applied {
		return " (applied)"
	}
	return " (refused)"
}

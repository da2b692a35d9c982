package ddb

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

// copies counts requests still on the way, by the time in their bytes.
type copies [ticks + 1]int8

func (c copies) any() bool { return c != copies{} }

// acquirer is one acquisition with its hold.
type acquirer struct {
	phase   phase
	waiting bool // an attempt is sent, and neither delivered nor given up
	unsure  bool // an attempt of the present request ended without an answer
	tries   int8 // attempts of the present request

	stub     bool // the present acquire makes a stub
	sent     int8 // the time in the bytes of the present acquire
	lateTake [2]copies

	token    token
	until    int8 // the holder's deadline
	fromStub bool
	op       op
	now      int8 // :now in the bytes of the present write
	lateOp   copies
	lateExt  copies // extensions on the way, by the lockTime that they set

	// The truth, which no acquirer sees.
	applied bool // the write that ends the hold
	stale   bool // others wrote since this hold's read
	over    bool // the life of the item that was read is over
	broken  bool // by an operator
	verdict Verdict
}

// removes reports whether the write that ends the hold deletes the item.
func (a *acquirer) removes() bool { return a.op == remove || a.op == release && a.fromStub }

// forget drops what cannot matter any more, so that equal worlds look equal.
func (w lockWorld) forget() lockWorld {
	for i := range w.who {
		a := &w.who[i]
		if a.phase == done && !a.lateOp.any() && !a.lateExt.any() {
			*a = acquirer{phase: done, lateTake: a.lateTake}
		}
	}
	return w
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

func (m *lockModel) next(w lockWorld, out emit[lockWorld]) {
	forgetting := func(who, what string, to lockWorld, wrong string) { out(who, what, to.forget(), wrong) }
	m.others(w, forgetting)
	for i := range m.acquirers {
		m.late(w, i, forgetting)
		switch w.who[i].phase {
		case fresh:
			if i == 0 || w.who[i-1].phase != fresh { // they are alike: in order
				m.sendTake(w, i, false, forgetting)
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

// sendTake sends an acquire with new bytes.
func (m *lockModel) sendTake(w lockWorld, i int, stub bool, out emit[lockWorld]) {
	a := &w.who[i]
	a.phase, a.waiting, a.stub, a.sent = taking, true, stub, w.now
	a.tries++
	what := "sends acquire"
	if stub {
		what = "sends a stub"
	}
	out(ids[i+1], what, w, "")
}

func (m *lockModel) taking(w lockWorld, i int, out emit[lockWorld]) {
	a := &w.who[i]
	name, stub, sent := ids[i+1], b2i(a.stub), a.sent
	if !a.waiting {
		if a.tries >= m.tries {
			return
		}
		if a.unsure && a.sent != w.now { // the same bytes; at the same time they are those of a new try
			same := w
			same.who[i].waiting = true
			same.who[i].tries++
			out(name, "repeats acquire", same, "")
		}
		m.sendTake(w, i, a.stub, out)
		return
	}
	a.waiting = false
	room := a.lateTake[stub][sent] < m.copies
	if room {
		lost := w
		lost.who[i].unsure = true
		lost.who[i].lateTake[stub][sent]++
		out(name, "gives up waiting for an acquire that is on its way", lost, "")
	}
	took := w.take(&m.lockRules, i, sent, a.stub)
	lost := w
	lost.who[i].unsure = true
	out(name, "acquire is delivered"+yes(took)+", the answer is lost", lost, "")
	m.answered(&w, i, took)
	out(name, "acquire is answered"+yes(took), w, "")
	if room {
		w.who[i].lateTake[stub][sent]++
		out(name, "acquire is answered"+yes(took)+", a copy is on its way", w, "")
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
		a.stub, a.unsure, a.waiting, a.sent = true, false, true, w.now
	case !it.exists || it.stub && !m.upsert:
		a.phase = done
	default:
		a.unsure = false // held by somebody else: a new try later
	}
}

func (m *lockModel) holding(w lockWorld, i int, out emit[lockWorld]) {
	name := ids[i+1]
	if until := w.now + 2*lease; m.extend && !w.who[i].lateExt.any() && w.who[i].until < until && until <= ticks {
		on := w
		on.who[i].lateExt[until]++
		out(name, "sends extend", on, "")
	}
	if w.who[i].lateExt.any() && !m.lateExtend {
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
	a.waiting = false
	room := a.lateOp[a.now] < m.copies
	if room {
		lost := w
		lost.who[i].unsure = true
		lost.who[i].lateOp[a.now]++
		out(name, "gives up waiting for a "+what+" that is on its way", lost, "")
	}
	applied, wrong := w.end(&m.lockRules, i, a.now)
	lost := w
	lost.who[i].unsure = true
	out(name, what+" is delivered"+yes(applied)+", the answer is lost", lost, wrong)
	if w.who[i].phase = done; applied {
		w.who[i].verdict = Committed
	} else if v, why := m.verdict(&w, i); wrong == "" {
		w.who[i].verdict, wrong = v, why
	}
	out(name, what+" is answered"+yes(applied), w, wrong)
	if room {
		w.who[i].lateOp[a.now]++
		out(name, what+" is answered"+yes(applied)+", a copy is on its way", w, wrong)
	}
}

// late delivers requests that nobody waits for any more.
func (m *lockModel) late(w lockWorld, i int, out emit[lockWorld]) {
	for at := range int8(len(copies{})) {
		for stub := range w.who[i].lateTake {
			if on := w; on.who[i].lateTake[stub][at] > 0 {
				on.who[i].lateTake[stub][at]--
				took := on.take(&m.lockRules, i, at, stub == 1)
				out(ids[i+1], "a late acquire arrives"+yes(took), on, "")
			}
		}
		if on := w; on.who[i].lateOp[at] > 0 {
			on.who[i].lateOp[at]--
			applied, wrong := on.end(&m.lockRules, i, at)
			out(ids[i+1], "a late "+opNames[w.who[i].op]+" arrives"+yes(applied), on, wrong)
		}
		if on := w; on.who[i].lateExt[at] > 0 {
			on.who[i].lateExt[at]--
			applied := on.stretch(&m.lockRules, i, at)
			out(ids[i+1], "an extend arrives"+yes(applied)+", no answer", on, "")
			if on.who[i].phase == holding {
				if applied {
					on.who[i].until = at
				}
				out(ids[i+1], "an extend is answered"+yes(applied), on, "")
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

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

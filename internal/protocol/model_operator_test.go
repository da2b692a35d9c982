package protocol

import "github.com/dynahold/dynahold/internal/stored"

// An operator's break: it looks, and ends by force the hold that it saw.

type operator struct {
	phase   phase
	seen    lockItem // as it was looked at
	waiting bool     // an attempt is sent, and neither delivered nor given up
	unsure  bool     // an attempt ended without an answer
	tries   int8
	late    int8 // attempts on their way that nobody waits for any more

	// The truth.
	applied bool // by this operator
	forced  bool // the hold that was seen was ended by force, by whomever
	verdict Verdict
}

// names reports whether the item is under the hold that the operator saw.
func (o *operator) names(it *lockItem) bool {
	return o.phase != fresh && it.by == o.seen.by && it.try == o.seen.try && it.held == o.seen.held
}

// force notes that whoever is named in lockedBy loses the lock to others.
func (w *lockWorld) force() {
	if w.op.names(&w.item) {
		w.op.forced = true
	}
}

// breakSeen applies the operator's break.
func (w *lockWorld) breakSeen(r *lockRules) (applied bool, wrong string) {
	it, o := &w.item, &w.op
	switch {
	case !it.exists || !o.names(it) || it.time != o.seen.time || it.marked != o.seen.marked:
		return false, ""
	case o.verdict == Lost:
		return true, "a break is applied after its verdict said that it never would be"
	}
	if !o.seen.lock().HasToken() {
		it.marked = true
	}
	w.break_(r)
	o.applied = true
	return true, ""
}

// operate takes the operator's steps.
func (m *lockModel) operate(w lockWorld, out emit[lockWorld]) {
	it := &w.item
	switch o := &w.op; o.phase {
	case fresh:
		if it.by != 0 || it.time != 0 {
			*o = operator{phase: ending, seen: *it, waiting: true, tries: 1}
			out("operator", "looks, and sends a break", w, "")
		}
		return
	case ending:
		m.breaking(w, out)
	}
	if on := w; on.op.late > 0 {
		on.op.late--
		if applied, wrong := on.breakSeen(&m.lockRules); applied {
			out("operator", "a late break arrives (applied)", on, wrong)
		}
	}
}

func (m *lockModel) breaking(w lockWorld, out emit[lockWorld]) {
	o := &w.op
	if !o.waiting {
		if o.tries < m.tries {
			o.waiting = true
			o.tries++
			out("operator", "repeats the break", w, "")
		}
		return
	}
	on := w
	on.op.waiting, on.op.unsure, on.op.late = false, true, min(o.late+1, m.copies)
	out("operator", "gives up waiting for a break that is on its way", on, "")
	on = w
	on.op.waiting = false
	applied, wrong := on.breakSeen(&m.lockRules)
	lost := on
	lost.op.unsure = true
	out("operator", "a break is delivered"+yes(applied)+", the answer is lost", lost, wrong)
	on.op.phase, on.op.verdict = done, Committed
	if !applied {
		on.op.verdict, wrong = m.broken(&on)
	}
	out("operator", "the break is answered"+yes(applied), on, wrong)
}

// broken judges the refusal of a break and compares with the truth.
func (m *lockModel) broken(w *lockWorld) (v Verdict, wrong string) {
	o := &w.op
	marked := Undecided
	if w.item.marked && !o.seen.marked {
		marked = Committed
	}
	judge := m.judgeBreak
	if judge == nil {
		judge = JudgeBreak
	}
	v = judge(w.item.lock(), o.seen.lock(), marked, w.item.exists, !o.unsure)
	m.given[v]++
	switch {
	case v == Committed && !o.applied && !o.forced:
		wrong = "the verdict is broken, but nobody ended the hold by force"
	case v == Lost && o.applied:
		wrong = "the verdict is not broken, but it was"
	}
	return v, wrong
}

// Judges of mutants.

// onlyStolen is the judge that knew lockStolen alone: what is not there was not
// broken.
func onlyStolen(l, seen stored.Record, _ Verdict, _, clean bool) Verdict {
	if !clean && seen.Held != 0 && l.Stolen == seen.Held {
		return Committed
	}
	return Lost
}

// trustsFreedom takes a lock that nobody has for broken by this call.
func trustsFreedom(l, seen stored.Record, marked Verdict, exists, clean bool) Verdict {
	if v := JudgeBreak(l, seen, marked, exists, clean); v != Undecided || l.Busy() {
		return v
	}
	return Committed
}

// trustsLeftToken takes the token that a hold by hand found for its own.
func trustsLeftToken(l, seen stored.Record, marked Verdict, exists, clean bool) Verdict {
	if seen.ByHand() && seen.Held != 0 {
		seen.By = wireIDs[1]
	}
	return JudgeBreak(l, seen, marked, exists, clean)
}

// trustsAnEnd takes a hold by hand that is not as it was seen for ended for ever.
func trustsAnEnd(l, seen stored.Record, marked Verdict, exists, clean bool) Verdict {
	if v := JudgeBreak(l, seen, marked, exists, clean); v != Undecided || seen.HasToken() {
		return v
	}
	return Lost
}

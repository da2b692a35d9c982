package resources_test

import "github.com/dynahold/dynahold/internal/resources"

// call begins a call.
func (m *model) call(w world, i int, q request, step stepper) {
	h := &w.hands[i]
	h.number(&q)
	h.unsure = h.unsure || h.doubt
	h.call, h.sent, h.doubt, h.applied, h.phase = q, w.now, false, false, calling
	if q.kind.ends() || q.kind == bury || q.kind == requeue || q.kind == discard || q.kind == cancel || q.kind == breakJob || q.kind == breakPermit || q.kind == release || q.kind == sweep {
		h.sent = 0 // nothing is reckoned from it
	}
	if m.conflicts && q.kind == start {
		step(handNames[i], "Start is in conflict with other transactions", w, "")
	}
	m.send(&w, i, answered, step)
}

// send sends the request of a call: it is answered, or it is not.
func (m *model) send(w *world, i int, v variant, step stepper) {
	q := w.hands[i].call
	if q.kind.draws() && w.token >= m.tokens {
		return
	}
	x := *w
	ok, held, wrong := m.apply(&x, i, &q)
	if x.hands[i].applied && q.kind.transacted() && !m.forgetful {
		ok = true
	}
	verdict := m.answer(&x, i, &q, ok, held)
	if wrong == "" {
		wrong = verdict
	}
	step(handNames[i], v.of(&q), x, wrong)
	if !q.kind.transacted() || !m.forgetful {
		m.resend(w, i, step)
	}
	x = *w
	x.hands[i].doubt = true
	if n := m.room(&x.hands[i]); n >= 0 {
		x.hands[i].late[n] = q
		step(handNames[i], delayed.of(&q), x, "")
		return
	}
	_, _, wrong = m.apply(&x, i, &q)
	step(handNames[i], unanswered.of(&q), x, wrong)
}

// resend is a network that delivers a request twice; the second answer is the
// one that is seen.
func (m *model) resend(w *world, i int, step stepper) {
	x, q := *w, w.hands[i].call
	first, _, wrong := m.apply(&x, i, &q)
	if !first || wrong != "" || q.kind.draws() && x.token >= m.tokens {
		return // as if delivered once
	}
	again := q
	again.applied = q.kind.transacted()
	ok, held, wrong := m.apply(&x, i, &again)
	verdict := m.answer(&x, i, &q, ok, held)
	if wrong == "" {
		wrong = verdict
	}
	m.seen[sawResent]++
	step(handNames[i], resent.of(&q), x, wrong)
}

// goOn is a hand whose call has no answer yet.
func (m *model) goOn(w *world, i int, step stepper) {
	h, x := &w.hands[i], *w
	q := h.call
	if (q.kind == renew || q.kind == extend) && w.now >= h.deadline {
		x.hands[i].resume()
		step(handNames[i], "ends its renewal at its deadline", x, "")
		return
	}
	if !h.doubt {
		if m.fromLastStart {
			x.hands[i].sent = w.now
		}
		m.send(&x, i, answered, step)
	} else if !q.kind.transacted() || m.forgetful || !h.applied {
		m.send(&x, i, repeated, step)
	} else {
		verdict := m.answer(&x, i, &q, true, true)
		step(handNames[i], repeated.of(&q), x, verdict)
	}
	x = *w
	switch {
	case q.kind == renew || q.kind == extend:
		x.hands[i].resume()
	case q.kind == take || q.kind == draw:
		x.hands[i].drop()
		step(handNames[i], "Acquire: no answer, dies", x, "")
		_, _, wrong := m.apply(&x, i, &request{kind: release, of: int8(i)})
		step(handNames[i], "Acquire: no answer, undoes it", x, wrong)
		return
	case q.kind.ends() && m.hopeful && !h.applied:
		step(handNames[i], givesUp.of(&q), x, falseSuccess)
		return
	default:
		m.seen[sawUnknown]++
		x.hands[i].drop()
	}
	if q.to != 0 {
		wrong := m.passedOn(&x, &q, false, false, h.sent)
		step(handNames[i], givesUp.of(&q), x, wrong)
		return
	}
	step(handNames[i], givesUp.of(&q), x, "")
}

// evidence reports whether the image of an end that failed says that somebody
// else has ended, or taken over, what the hand held.
func (m *model) evidence(w *world, i int, q *request, clean, late bool) bool {
	if q.kind == release || q.kind == pass {
		return (w.swept|w.brokenPermits)&(1<<i) != 0 && (!w.hands[i].unsure || m.anyEvidence)
	}
	if w.brokenJobs&(1<<q.token) != 0 {
		return true
	}
	j := &w.jobs[q.of]
	return clean && (late || j.at == atWork && j.place == q.place && j.token != q.token)
}

// resume goes on with work after a renewal.
func (h *hand) resume() {
	h.phase, h.call, h.doubt, h.applied, h.sent = working, request{}, false, false, 0
}

// hold gives a hand what it has started or acquired, from the time sent on.
func (m *model) hold(w *world, i int, to hand) string {
	h := &w.hands[i]
	to.late, to.permit, to.acquired, to.unsure, to.evicted, to.phase = h.late, h.permit, h.acquired, h.unsure, h.evicted, working
	*h = to
	if w.now >= to.deadline || to.broken(w) {
		return ""
	}
	if !to.onPermit {
		w.jobs[to.job].worked = m.unworked
	}
	if m.limit == 1 {
		if to.token <= w.top {
			return oldToken
		}
		w.top = to.token
	}
	return ""
}

// passedOn is what becomes of the hand to which a permit was to be passed on. ok says
// that the request was applied.
func (m *model) passedOn(w *world, q *request, ok, clean bool, sent int8) (wrong string) {
	i := int(q.to - 1)
	h, passed := &w.hands[i], q.kind == pass && ok
	switch {
	case h.phase != waiting: // what it may have got is given back for it
		m.seen[sawLeft]++
		if passed || !clean || h.permit != 0 {
			_, _, wrong = m.apply(w, i, &request{kind: release, of: q.to - 1})
		}
	case passed || m.passBelieved && !clean:
		if m.passFromAnswer {
			sent = w.now
		}
		h.unsure = w.hands[q.of].unsure && !m.passSure // a late Acquire of that permit can wake a copy of this request
		return m.hold(w, i, hand{onPermit: true, token: w.token, deadline: sent + m.lease})
	case !ok && h.permit != 0: // by an earlier attempt, or another copy
		m.found(w, h, i)
	case clean:
		m.seen[sawNotPassed]++
	default:
		h.unsure = h.unsure || !m.passForgotten
	}
	return wrong
}

// found is a hand that finds its permit without having been told its token.
func (m *model) found(w *world, h *hand, i int) {
	m.seen[sawFound]++
	h.phase, h.call, h.doubt, h.applied = calling, request{kind: draw, of: int8(i), ends: w.now + m.lease}, false, false
	h.number(&h.call)
	h.sent = w.now
}

// answer is what a hand makes of the answer to its call: applied, or a
// condition failed. It returns the promise that this breaks.
func (m *model) answer(w *world, i int, q *request, ok, held bool) (wrong string) {
	h := &w.hands[i]
	sent, clean, was, late := h.sent, !h.doubt, h.applied, w.now >= h.deadline
	switch q.kind {
	case start, takeover:
		j := &w.jobs[q.of]
		ours := was && j.at == atWork && j.token == q.resource+1 // its owner says so
		switch {
		case ok && m.split && q.kind == start:
			h.drop()
			h.phase, h.call = owes, *q
		case ok || ours:
			if !clean {
				m.seen[sawFound]++
			}
			if q.kind == takeover {
				m.seen[sawTakeover]++
			}
			return m.hold(w, i, hand{job: q.of, token: q.resource + 1, attempts: q.attempts + 1, place: q.place, deadline: sent + m.lease})
		case held && w.token > q.resource && w.token < m.tokens: // only the token was another
			again := *q
			again.resource, again.ends = w.token, w.now+m.lease
			h.number(&again)
			h.call, h.sent, h.doubt, h.applied = again, w.now, false, false
		default:
			m.seen[sawBusy]++
			h.drop()
		}
		return ""
	case done, fail, returnJob, release, pass:
		if q.kind == pass && !ok && h.permit != 0 { // what is refused is that another gets it
			h.call = request{kind: release, of: q.of, to: q.to}
			h.number(&h.call)
			h.sent = 0
			return ""
		}
		passed := q.to != 0 && w.hands[q.to-1].permit != 0 // by an earlier attempt
		told := m.hastyLost || m.evidence(w, i, q, clean, late) || clean && m.cleanLost
		silent := (q.kind == release || q.kind == pass) && w.brokenPermits&(1<<i) != 0 // it may be that of an earlier try
		// Of a job the rule is the same: before the deadline nobody else can have ended it.
		gone := resources.JudgeGone(passed, told, silent, late && !m.noDeadline)
		given, lost := gone == resources.ByThisEnd, gone == resources.ByOthers
		success := ok || given
		switch {
		case ok:
			m.seen[map[kind]sight{done: sawDone, fail: sawFail, returnJob: sawReturn, release: sawRelease, pass: sawPassed}[q.kind]]++
			if late {
				m.seen[sawLateEnd]++
			}
		case lost:
			m.seen[sawLost]++
			if was {
				wrong = falseLoss
			}
		case given && !passed:
			m.seen[sawBesides]++
		case !given:
			m.seen[sawUnknown]++
		}
		if success && !was {
			wrong = falseSuccess
		}
		h.drop()
		if q.to != 0 && wrong == "" {
			wrong = m.passedOn(w, q, ok, clean, sent)
		}
		if success && m.split && q.kind.ends() {
			h.phase, h.call = owes, *q
		}
		return wrong
	case renew:
		if j := &w.jobs[q.of]; !ok && (j.token != q.token || j.at != atWork || j.until != q.ends) {
			if j.at == atWork && j.token == q.token {
				wrong = falseLoss
			}
			m.seen[sawLost]++
			h.drop()
			return wrong
		}
		m.seen[sawRenewal]++
		h.deadline = sent + m.lease
		h.resume()
	case extend:
		if !ok && h.permit != q.ends {
			if h.permit != 0 {
				wrong = falseLoss
			}
			m.seen[sawLost]++
			h.drop()
			return wrong
		}
		m.seen[sawRenewal]++
		h.deadline = sent + m.lease
		h.resume()
	case take:
		h.unsure = h.unsure || h.doubt
		switch {
		case ok:
			m.seen[sawPermit]++
			return m.hold(w, i, hand{onPermit: true, token: w.token, deadline: sent + m.lease})
		case h.permit != 0: // by an earlier attempt, or by one of an earlier try
			if m.found(w, h, i); m.fromLastTry {
				h.sent = sent
			}
		case m.waits:
			m.seen[sawBusy]++
			h.phase, h.call, h.doubt, h.applied = waiting, request{}, false, false
		default:
			m.seen[sawBusy]++
			h.drop()
		}
	case draw:
		if ok {
			return m.hold(w, i, hand{onPermit: true, token: w.token, deadline: sent + m.lease})
		}
		m.seen[sawLost]++
		h.drop()
	case cancel:
		switch j := &w.jobs[q.of]; {
		case ok:
			m.seen[sawCancel]++
		case clean || j.at != nowhere: // it is there, or nothing was removed
			if was {
				wrong = falseLoss
			}
		default:
			m.seen[sawUnknown]++
		}
		h.drop()
	case breakJob, breakPermit:
		evidence := q.kind == breakJob && w.brokenJobs&(1<<q.token) != 0 || q.kind == breakPermit && w.brokenPermits&(1<<q.of) != 0
		switch told := ok || evidence; {
		case told:
			m.seen[sawBreak]++
		case was:
			wrong = falseLoss
		}
		h.drop()
	default:
		if ok {
			m.seen[map[kind]sight{bury: sawBury, requeue: sawRequeue, discard: sawDiscard, sweep: sawSweep}[q.kind]]++
		}
		h.drop()
	}
	return wrong
}

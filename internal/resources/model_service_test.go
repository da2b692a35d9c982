package resources_test

import "slices"

// The service.

// asSeen is the condition that a job is as it was read.
func (m *model) asSeen(j *modelJob, q *request) bool {
	if m.unseen {
		return (j.at == inLine || j.at == atWork) && j.place == q.place // its row exists
	}
	return j.at == q.at && j.place == q.place && j.attempts == q.attempts && j.token == q.token && j.until == q.until
}

// own is the condition that a job runs under the token of a handler.
func (m *model) own(j *modelJob, q *request) bool {
	return j.at == atWork && j.place == q.place && (j.token == q.token || m.noOwn)
}

// enqueued applies an Enqueue.
func (m *model) enqueued(w *world, n int) (ok bool, wrong string) {
	j := &w.jobs[n]
	switch {
	case j.applied && !m.forgetful:
		return true, ""
	case m.marked && j.marker:
		return false, "" // the row of its id is there
	case j.at != nowhere && j.at != buried && j.place == 0:
		return false, "" // its id is not new
	case j.over:
		wrong = comesBack
	case j.at != nowhere:
		wrong = isTwice
	}
	j.at, j.place, j.attempts, j.token, j.until, j.applied = inLine, 0, 0, 0, 0, true
	j.marker = m.marked
	w.queued++
	return true, wrong
}

// apply applies a request of hand i, if its condition holds. held says that
// the condition on the job did; wrong is the promise that this breaks.
func (m *model) apply(w *world, i int, q *request) (ok, held bool, wrong string) {
	if q.applied && q.kind.transacted() && !m.forgetful {
		return true, true, ""
	}
	h := &w.hands[i]
	var j *modelJob
	if q.kind < take {
		j = &w.jobs[q.of]
	}
	switch q.kind {
	case start, takeover:
		if held = m.asSeen(j, q); !held || w.token > q.resource && !m.anyToken || q.kind == start && w.running >= m.most(w) && !m.noLimit {
			return false, held, ""
		}
		j.at, j.attempts, j.token, j.until = atWork, q.attempts+1, q.resource+1, q.ends
		if m.sameToken && q.kind == takeover {
			j.token = q.resource
		}
		if w.token >= j.token {
			wrong = tokenTwice
		}
		w.token = j.token
		switch {
		case q.kind == start && !m.split:
			w.queued, w.running = w.queued-1, w.running+1
		case q.kind == takeover && m.takeoverCounts:
			w.running++
		}
	case done, fail, returnJob:
		if !m.own(j, q) {
			return false, false, ""
		}
		if j.token != q.token {
			wrong = others
		}
		j.until = 0
		switch {
		case q.kind == done:
			*j = modelJob{enq: j.enq, copy: j.copy, applied: j.applied, acked: j.acked, marker: j.marker, over: true}
		case q.kind == returnJob:
			j.at, j.attempts = inLine, q.attempts-1
		case q.attempts >= attempts:
			j.at, j.attempts, j.token = buried, q.attempts, 0
		default:
			j.at, j.attempts, j.token, j.place = inLine, q.attempts, 0, q.place+1
		}
		if !m.split {
			m.counted(w, q)
		}
	case bury:
		if !m.asSeen(j, q) {
			return false, false, ""
		}
		if m.unworked && !j.worked {
			wrong = unworked
		}
		j.at, j.token, j.until = buried, 0, 0
		w.running--
		if !m.buryNotDead {
			w.dead++
		}
	case requeue, discard:
		if j.at != buried {
			return false, false, ""
		}
		w.dead--
		if q.kind == discard {
			*j = modelJob{enq: j.enq, copy: j.copy, applied: j.applied, acked: j.acked, marker: j.marker, over: true}
			break
		}
		j.at, j.attempts, j.place = inLine, 0, q.place+1
		w.queued++
	case cancel:
		if mutant := m.anyCancel && j.at != nowhere && j.place == q.place; !m.asSeen(j, q) && !mutant {
			return false, false, ""
		}
		if j.at == atWork {
			wrong = others
		}
		*j = modelJob{enq: j.enq, copy: j.copy, applied: j.applied, acked: j.acked, marker: j.marker, over: true}
		w.queued--
	case breakJob:
		if mutant := m.blindBreak && j.at == atWork; !m.own(j, q) && !mutant {
			return false, false, ""
		}
		if j.token != q.token {
			wrong = others
		}
		j.at, j.until = inLine, 0
		w.running, w.queued, w.evicted = w.running-1, w.queued+1, w.evicted|1<<j.token
		if !m.noEvidence {
			w.brokenJobs |= 1 << q.token
		}
	case breakPermit:
		of := &w.hands[q.of]
		if of.permit == 0 || of.permit != q.until {
			return false, false, ""
		}
		of.permit, of.evicted = 0, true
		w.running--
		if !m.noEvidence {
			w.brokenPermits |= 1 << q.of
		}
	case renew:
		if !m.own(j, q) || j.until >= q.ends {
			return false, false, ""
		}
		j.until = q.ends
	case take:
		if h.permit != 0 || w.running >= m.most(w) && !m.noLimit || w.paused {
			return false, false, ""
		}
		h.permit = q.ends
		h.evicted = h.evicted && h.phase != calling // a late copy is none that it will have
		w.running++
		w.token++
	case release:
		if h.permit == 0 && !m.blindRelease {
			return false, false, ""
		}
		h.permit = 0
		w.running--
	case pass:
		to := &w.hands[q.to-1]
		switch {
		case h.permit == 0 && !m.passOfNothing, to.permit != 0 && !m.passOntoPermit:
			return false, false, ""
		case w.running > m.most(w):
			if wrong = overTheLimit; !m.passAtAnyLimit {
				return false, false, ""
			}
		case w.paused:
			if wrong = inPause; !m.passInPause {
				return false, false, ""
			}
		}
		h.permit, to.permit = 0, q.ends
		if !m.passOldToken {
			w.token++
		}
	case sweep:
		p := &w.hands[q.of].permit
		if *p != q.until && !m.blindSweep {
			return false, false, ""
		}
		*p = 0
		w.running--
		w.swept |= 1 << q.of
	case extend:
		if h.permit == 0 || h.permit >= q.ends {
			return false, false, ""
		}
		h.permit = q.ends
	case draw:
		if h.permit == 0 || h.permit > q.ends && !m.blindDraw {
			return false, false, ""
		}
		if !m.fromLastTry {
			h.permit = q.ends
		}
		w.token++
	}
	if q.applied && q.kind.transacted() && wrong == "" {
		wrong = appliedTwice
	}
	m.applied(w, i, q)
	return true, true, wrong
}

// most is the limit as an operator has left it.
func (m *model) most(w *world) int8 { return m.limit - w.cut }

// counted is what the end of a job does to its resource.
func (m *model) counted(w *world, q *request) {
	if keeps := q.kind == fail && m.failKeepsRunning || q.kind == done && m.doneKeepsRunning; !keeps {
		w.running--
	}
	switch {
	case q.kind == fail && q.attempts >= attempts:
		w.dead++
	case q.kind == fail, q.kind == returnJob && !m.returnNotQueued:
		w.queued++
	}
}

// applied notes for the copies of a request, and for its sender, that it was.
func (m *model) applied(w *world, i int, q *request) {
	h, was := &w.hands[i], *q
	was.applied = false
	for n := range h.late {
		l := h.late[n]
		if l.applied = false; l != was || !q.kind.transacted() {
			continue
		}
		if m.forgetful {
			h.late[n].applied = true
		} else {
			h.late[n] = request{}
		}
	}
	if after := q.kind == pass && h.call.kind == release; h.phase == calling && (h.call == was || after) {
		h.applied = true
	}
}

// tidy forgets late requests whose condition never will hold again, so that
// worlds are one that differ only in them.
func (m *model) tidy(w *world) {
	for i := range m.hands {
		h := &w.hands[i]
		for n := range h.late {
			switch q := &h.late[n]; q.kind {
			case start, takeover:
				if w.token > q.resource {
					*q = request{}
				}
			case done, fail, returnJob, renew, breakJob:
				if j := &w.jobs[q.of]; !m.noOwn && (j.at != atWork || j.token != q.token) {
					*q = request{}
				}
			case bury, cancel:
				if !m.unseen && !m.asSeen(&w.jobs[q.of], q) {
					*q = request{}
				}
			case release, extend, sweep, draw, pass, breakPermit:
				of := &w.hands[q.of]
				if gone := of.permit == 0 || (q.kind == sweep || q.kind == breakPermit) && of.permit > q.until || q.kind == extend && of.permit >= q.ends; gone && m.settled(w, q.of) && !m.passOfNothing && !m.blindSweep && !m.blindRelease {
					*q = request{}
				}
			}
		}
		if m.late < 2 {
			continue
		}
		slices.SortFunc(h.late[:], func(a, b request) int {
			return a.order() - b.order()
		})
	}
}

// settled reports whether the permit of a hand, once gone, never comes back.
func (m *model) settled(w *world, of int8) bool {
	for i := range m.hands {
		h := &w.hands[i]
		brings := func(q request) bool { return q.kind == pass && q.to == of+1 || q.kind == take && i == int(of) }
		if brings(h.call) || slices.ContainsFunc(h.late[:], brings) {
			return false
		}
	}
	return w.hands[of].acquired && w.hands[of].phase != waiting
}

// order puts late requests in one order, the empty ones last.
func (q *request) order() int {
	if q.kind == none {
		return 1 << 50
	}
	n := 0
	for _, v := range [...]int8{int8(q.kind), q.of, q.resource, q.token, q.until, q.ends, q.to, q.try} {
		n = n<<5 | int(v)
	}
	return n
}

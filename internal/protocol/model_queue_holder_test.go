package protocol

import "slices"

// The queue on the item, seen from those who hold the lock, or leave.

// again draws once more, if the bounds allow it.
func (m *queueModel) again(w *queueWorld, i int) {
	q := &w.who[i]
	e, turns := q.entry+1, q.turns
	*q = queuer{phase: away, dead: q.dead, asked: -1, entry: e - 1}
	if e%draws != 0 {
		*q = queuer{phase: idle, turns: turns + 1, entry: e, asked: -1}
	}
}

// finish ends an acquisition.
func (m *queueModel) finish(w *queueWorld, i int) {
	q := &w.who[i]
	if q.turns > 0 {
		q.turns--
		m.again(w, i)
		return
	}
	*q = queuer{phase: away, entry: q.entry, asked: -1}
}

// hold makes the handle: what is known of the queue is what the answer shows.
func (m *queueModel) hold(w *queueWorld, i int, it *queueItem, left int8) {
	q := &w.who[i]
	q.phase, q.left, q.unsure, q.claimed, q.had = having, left, false, !isHanded(it.by), true
	if m.closed {
		q.left, q.claimed = forever, true
	}
	q.req = request{kind: toEnd, entry: q.entry, by: it.by, token: it.held, base: it.version}
	m.note(it, &q.req)
}

// note keeps whom to hand over to.
func (m *queueModel) note(it *queueItem, req *request) {
	req.to, req.place, req.drawn = -1, 0, it.token
	req.own = m.find(&it.queue, ownEntry(it.by))
	for place := range int8(len(it.queue)) {
		if e := it.queue.entry(place); e >= 0 && place != req.own {
			req.to, req.place = e, place
			return
		}
	}
}

// have is what a holder does.
func (m *queueModel) have(w queueWorld, i int, out emit[queueWorld]) {
	q := &w.who[i]
	name := queueIDs[taker(q.entry)]
	if q.left > 0 || q.claimed {
		for _, writes := range []bool{true, false} {
			if writes == m.closed && (m.quick || m.closed) {
				continue // a row has nothing to change; and to change it says more than not to
			}
			on := w
			h := &on.who[i]
			h.phase, h.unsure = giving, false
			h.req.writes, h.req.age, h.req.beat = writes, 0, w.item.beat
			h.req.due = w.item.age >= w.item.term
			out(name, "is done", on, "")
		}
	}
	if q.claimed || m.quick && q.left > 0 || m.noTime {
		return
	}
	// A claim, in one step; its copies come late.
	req := request{kind: toClaim, entry: q.entry, by: q.req.by, token: q.req.token}
	m.fates(w, i, req, "claims", out, func(on *queueWorld, applied bool) string {
		q := &on.who[i]
		switch {
		case applied:
			q.left, q.claimed = fullLease, true
			m.note(&on.item, &q.req)
		case on.item.by == q.req.by && on.item.held == q.req.token: // landed before
			m.note(&on.item, &q.req)
			q.left, q.claimed = max(0, fullLease-on.item.age), true
		default:
			m.again(on, i)
		}
		return ""
	}, func(*queueWorld) {})
}

// settle confirms a hold that was handed over: before anybody has it.
func (m *queueModel) settle(w queueWorld, i int, out emit[queueWorld]) {
	q := w.who[i]
	m.fates(w, i, q.req, "settles", out, func(on *queueWorld, applied bool) string {
		switch it := &on.item; {
		case applied, it.by == taker(q.entry) && it.held == q.req.token:
			m.hold(on, i, it, forever)
		default: // it was taken over
			m.again(on, i)
		}
		return ""
	}, func(on *queueWorld) { on.who[i].unsure = true })
	if q.unsure { // it gives the lock on, which may be settled or not
		on := w
		g := &on.who[i]
		g.phase, g.turns = giving, 0
		g.req.kind = toEnd
		m.note(&on.item, &g.req)
		out(fault+queueIDs[taker(q.entry)], "gives up its claim", on, "")
	}
}

// hedge sends the write that ends a hold a second time, while the first is on its way: the
// answer to either is the verdict on both.
func (m *queueModel) hedge(w queueWorld, i int, out emit[queueWorld]) {
	slot := slices.IndexFunc(w.late[:], func(q request) bool { return q.kind == noRequest })
	if w.hedges == 0 || slot < 0 || w.who[i].req.to < 0 {
		return
	}
	w.hedges--
	w.late[slot] = w.who[i].req
	w.who[i].unsure = w.who[i].unsure || !m.hedgeClean
	out(queueIDs[taker(w.who[i].entry)], "ends, and once more", w, "")
}

// send sends the present request.
func (m *queueModel) send(w queueWorld, i int, out emit[queueWorld]) {
	q := w.who[i]
	if q.req.kind == toEnd {
		m.hedge(w, i, out)
	}
	name, what := queueIDs[taker(q.entry)], [...]string{toDraw: "draws", toEnd: "ends", toPass: "takes over", toLeave: "leaves"}[q.req.kind]
	asked := q.req.age
	m.fates(w, i, q.req, what, out, func(on *queueWorld, applied bool) string {
		switch q.req.kind {
		case toDraw:
			m.drawn(on, i, asked, applied)
		case toPass:
			if applied {
				m.hold(on, i, &on.item, fullLease-asked)
				break
			}
			m.see(on, i, asked)
		case toLeave:
			return m.left(on, i, applied)
		case toEnd:
			return m.judge(on, i, applied)
		}
		return ""
	}, func(on *queueWorld) {
		l := &on.who[i]
		switch q.req.kind {
		case toDraw, toEnd:
			l.unsure = true
		case toPass:
			l.phase = waiting // the next look tells
			l.req = request{}
		case toLeave:
			m.gone(on, i)
		}
	})
	if q.req.kind == toEnd && q.unsure && !m.closed { // else it is as of one who has died
		on := w
		m.finish(&on, i)
		out(fault+name, "gives up", on, "")
	}
}

// drawn is what a process makes of the answer to its draw. It stands in the queue only if
// that was applied: else the entry that is there may be another's.
func (m *queueModel) drawn(w *queueWorld, i int, asked int8, applied bool) {
	if q := &w.who[i]; applied || m.believesThere {
		m.remember(q, &w.item)
	}
	m.see(w, i, asked)
}

// gone is the end of one who has left.
func (m *queueModel) gone(w *queueWorld, i int) {
	if w.who[i].back {
		m.again(w, i)
		return
	}
	m.finish(w, i)
}

// left is the end of a leave; what was handed over meanwhile is given back.
func (m *queueModel) left(w *queueWorld, i int, applied bool) string {
	q, it := &w.who[i], &w.item
	ours := it.by == taker(q.entry) || isHanded(it.by) && m.same(ownEntry(it.by), q.entry) && m.certain(q, it)
	place := m.find(&it.queue, q.entry)
	switch {
	case !applied && !ours && place >= 0:
		q.req.place = place // others have left the queue at its head
		return ""
	case !applied && q.late: // it may have been handed the lock: the answer to its draw will tell
		q.phase, q.late, q.back, q.unsure = drawing, false, false, true
		q.req = request{kind: toDraw, entry: q.entry, age: q.made}
		return ""
	case applied, !ours:
		m.gone(w, i)
		return ""
	}
	if m.leaveBlind {
		return "somebody left with the lock in its hands"
	}
	m.hold(w, i, &w.item, 0)
	q.phase, q.had, q.left = giving, false, 0
	return ""
}

// judge is what a holder makes of the answer to the write that ends its hold.
func (m *queueModel) judge(w *queueWorld, i int, applied bool) string {
	q := &w.who[i]
	if applied {
		m.finish(w, i)
		return ""
	}
	if !w.faulty {
		m.wasted++
	}
	req := &q.req
	if w.own(&queueRules{}, req) && (!req.writes || w.inTime(req)) && !w.fits(&queueRules{}, req) {
		to := req.to
		m.note(&w.item, req) // somebody has come, or left
		if to >= 0 && !w.faulty {
			return "a hand-over failed although nothing went wrong"
		}
		return ""
	}
	if m.closed && isHanded(req.by) && w.item.by == taker(req.entry) && w.item.held == req.token && !m.releaseOnce {
		req.by = w.item.by // its claim has landed
		m.note(&w.item, req)
		return ""
	}
	if !req.writes {
		m.finish(w, i)
		return ""
	}
	v := JudgeCommit(w.item.lock(), Holder{ID: queueIDs[req.by], Token: int64(req.token)}, true, !q.unsure)
	m.given[v]++
	e, wrong := req.entry, ""
	switch {
	case v == Committed && !w.applied[e]:
		wrong = "the verdict is committed, but the write is not applied"
	case (v == Lost || v == Expired) && w.applied[e]:
		wrong = "the verdict is not applied, but the write is"
	}
	w.refused[e] = v == Lost || v == Expired
	m.finish(w, i)
	return wrong
}

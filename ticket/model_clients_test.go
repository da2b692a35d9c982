package ticket

import (
	"slices"
)

// send walks the fates of one request: answered, its answer lost, on its way,
// and answered with a copy on its way.
func (w world) send(what deed, out step, slot func(*world), apply func(*world) bool, answer func(*world, bool) string) {
	to := w
	applied := apply(&to)
	out(what.with("no answer", applied), to, "")
	wrong := answer(&to, applied)
	out(what.with("answered", applied), to, wrong)
	if w.late == 0 {
		return
	}
	to = w
	to.late--
	slot(&to)
	out(what.with("on its way", false), to, "")
	applied = apply(&to)
	wrong = answer(&to, applied)
	out(what.with("answered, a copy on its way", applied), to, wrong)
}

func (r *rules) next(w world, emit step) {
	out := func(what deed, to world, wrong string) {
		if wrong == "" {
			wrong = to.wrong(r)
		}
		emit(what, to, wrong)
	}
	if w.now < r.end {
		to := w
		to.now++
		out(deed{what: "sees time pass, as all do"}, to, "")
	}
	// The TTL is a day past every end: no request to join, or to break, is that old.
	old := w.breaking.phase == 1 || w.breaking.lateB != 0 || slices.ContainsFunc(w.who[:], func(m member) bool { return m.lateJoin != 0 || m.phase == joining })
	if w.exists && w.now > w.ttl && !old {
		to := w
		to.exists, to.next, to.n, to.left, to.ttl, to.w, to.b, to.broken = false, 0, 0, 0, 0, [clients]int8{}, [clients]int8{}, [clients]int8{}
		out(deed{what: "sees the item removed by its TTL"}, to, "")
	}
	if r.tampers && !w.tampered && w.n > 0 {
		to := w
		to.n, to.tampered = 0, true
		out(deed{what: "sees n set to nothing by hand"}, to, "")
	}
	if r.breaks {
		r.breakOne(w, out)
	}
	for i := range r.members {
		if i > 0 && w.who[i-1].phase == fresh {
			break // clients are alike: they begin in order
		}
		r.copies(w, i, out)
		r.act(w, i, out)
	}
}

// breakOne is somebody who sees an entry, and breaks it.
func (r *rules) breakOne(w world, out step) {
	o := w.breaking
	if o.lateB != 0 {
		to := w
		to.breaking.lateB = 0
		to.brk(r, o.of, o.w, o.lateB)
		out(deed{what: "has a late copy arrive: break"}, to, "")
	}
	switch o.phase {
	case 0:
		for i := range r.members {
			if w.w[i] != noTicket {
				to := w
				to.breaking = breaking{phase: 1, of: int8(i), w: w.w[i], b: w.b[i]}
				out(deed{who: i, what: "is seen by who will break its ticket"}, to, "")
			}
		}
	case 1:
		doubt := w
		doubt.breaking.doubt = true
		doubt.send(deed{who: int(o.of), what: "is broken"}, out, func(to *world) { to.breaking.lateB = o.b },
			func(to *world) bool { return to.brk(r, o.of, o.w, o.b) },
			func(to *world, applied bool) string {
				if !applied && to.w[o.of] == o.w { // it was renewed
					to.breaking.b, to.breaking.doubt = to.b[o.of], o.doubt
					return ""
				}
				to.breaking.phase = 2
				told := applied || o.doubt && to.line().brokenTicket(int64(o.w))
				unknown := !applied && o.doubt && !to.exists
				switch {
				case applied && w.w[o.of] != o.w:
					return "a ticket is broken that nobody has named"
				case told && !to.breaking.done:
					return "told that a ticket is broken, and it is not"
				case !told && !unknown && to.breaking.done:
					return "told that a ticket was gone, and it was broken"
				}
				return ""
			})
	}
}

// copies delivers what is on its way.
func (r *rules) copies(w world, i int, out step) {
	m := w.who[i]
	deliver := func(what string, there bool, apply func(*world)) {
		if there {
			to := w
			apply(&to)
			out(deed{who: i, what: what}, to, "")
		}
	}
	deliver("has a late copy arrive: join", m.lateJoin != 0, func(to *world) { to.who[i].lateJoin = 0; to.join(r, i, m.lateJoin-1) })
	deliver("has a late copy arrive: renew", m.lateRenew != 0, func(to *world) { to.who[i].lateRenew = 0; to.renew(r, i, m.ticket, m.lateRenew) })
	deliver("has a late copy arrive: leave", m.lateRemove != 0, func(to *world) { to.leaveLate(r, i) })
	deliver("has a late copy arrive: pass", m.latePass != snapshot{}, func(to *world) { to.who[i].latePass = snapshot{}; to.pass(r, m.latePass) })
}

// act does what a client may do next; that it does nothing more is among the
// orders of events, since all others go on.
func (r *rules) act(w world, i int, out step) {
	switch m := w.who[i]; m.phase {
	case fresh:
		if r.twoSteps {
			to := w
			to.who[i].ticket, to.who[i].sent = to.draw(r, w.now), w.now
			to.who[i].phase, to.who[i].deadline = drawn, w.now+halves
			out(deed{who: i, what: "draws a number"}, to, "")
			return
		}
		w.who[i].phase, w.who[i].sent = joining, w.now
		r.join(w, i, out)
		if r.tries {
			w.who[i].alone = true
			r.join(w, i, out)
		}
	case joining:
		if !m.carried {
			r.join(w, i, out)
		}
	case drawn:
		to := w
		to.w[i], to.b[i], to.n = m.ticket, m.sent+halves, to.n+1
		to.who[i].phase = waiting
		out(deed{who: i, what: "enters"}, to, "")
	case waiting, holding:
		r.keep(w, i, out)
		r.leave(w, i, out)
		if r.noAsk && m.phase == waiting && w.now >= m.deadline {
			to := w
			to.who[i].deadline = w.now + halves
			out(deed{who: i, what: "comes back, and asks nobody"}, to, "")
		}
		if m.phase == waiting {
			r.wait(w, i, out)
		}
	case leaving:
		r.leave(w, i, out)
	}
}

func (r *rules) join(w world, i int, out step) {
	sent := w.who[i].sent
	w.send(deed{who: i, what: "joins"}, out, func(to *world) { to.who[i].lateJoin = sent + 1 },
		func(to *world) bool { return to.join(r, i, sent) },
		func(to *world, _ bool) string {
			m := &to.who[i]
			m.phase, m.ticket, m.deadline = waiting, to.w[i], sent+halves
			ahead, present := to.ahead(i)
			m.saw = present && (len(ahead) == 0 || m.alone && r.trustCount)
			switch {
			case !present && (m.alone || to.n < 0):
				m.phase, m.ticket = gone, noTicket // refused
			case m.alone && !m.saw:
				m.phase = leaving // the entries say otherwise than the count
			}
			return ""
		})
}

// lost is what becomes of a client whose place others took away. Who waits by
// Lock draws again, under a new id. An id stands for a client here, so it does
// only where no late copy, and no entry that one has made, has the old one.
func (r *rules) lost(w *world, i int) {
	m := &w.who[i]
	if !r.comesBack || m.phase != waiting || m.alone || m.redrawn || m.lateJoin != 0 || m.lateRenew != 0 || w.w[i] != noTicket {
		m.phase = gone
		return
	}
	*m = member{phase: joining, sent: w.now, redrawn: true, lateRemove: m.lateRemove, lateAlong: m.lateAlong, latePass: m.latePass}
}

// keep renews, with the bytes of the request that had no answer, if any.
func (r *rules) keep(w world, i int, out step) {
	m := w.who[i]
	if m.until == 0 {
		// Who holds stops at its deadline; who only waits may still ask whether its
		// place is there.
		back := r.comesBack && m.phase == waiting
		if w.now >= m.deadline && !back || w.now == m.deadline-halves {
			return
		}
		w.who[i].until = w.now + halves
	}
	until := w.who[i].until
	w.send(deed{who: i, what: "renews"}, out, func(to *world) { to.who[i].lateRenew = until },
		func(to *world) bool { return to.renew(r, i, m.ticket, until) },
		func(to *world, applied bool) string {
			m := &to.who[i]
			m.until = 0
			switch {
			case !applied && (to.w[i] != m.ticket || to.b[i] != until) && !r.blindReturn:
				r.lost(to, i)
			case r.fromAnswer:
				m.deadline = to.now + halves
			default:
				m.deadline = until
			}
			return ""
		})
}

// leaveLate delivers a late copy of a removal.
func (w *world) leaveLate(r *rules, i int) {
	m := &w.who[i]
	ticket, along := m.lateRemove, m.lateAlong
	m.lateRemove, m.lateAlong = 0, 0
	if along != 0 {
		w.carry(r, i, ticket, int(along-1))
	} else {
		w.remove(r, i, ticket)
	}
}

// carry is leaving with a request that lets another client enter: the next one, which has
// not asked for a ticket by itself.
func (r *rules) carry(w world, i int, out step) {
	m := &w.who[i]
	j := int(m.along) - 1
	if j < 0 {
		j = slices.IndexFunc(w.who[:r.members], func(m member) bool { return m.phase == fresh })
		if j < 0 || m.phase == leaving {
			return
		}
		w.who[j] = member{phase: joining, sent: w.now, carried: true}
	}
	ticket := m.ticket
	m.phase, m.saw, m.seen, m.along = leaving, false, snapshot{}, int8(j+1)
	doubt := w
	doubt.who[i].doubt = true
	doubt.send(deed{who: i, what: "leaves, and lets the next one enter"}, func(what deed, to world, wrong string) {
		if !w.who[i].doubt && to.who[i].phase == gone {
			to.who[i].doubt = false
		}
		out(what, to, wrong)
	}, func(to *world) { to.who[i].lateRemove, to.who[i].lateAlong = ticket, int8(j+1) },
		func(to *world) bool { return to.carry(r, i, ticket, j) },
		func(to *world, applied bool) string {
			m, o := &to.who[i], &to.who[j]
			o.carried = false
			entered := to.w[j] != noTicket && to.b[j] == o.sent+halves
			switch {
			case entered || r.hopeful:
				o.phase, o.ticket, o.deadline = waiting, to.w[j], o.sent+halves
				ahead, present := to.ahead(j)
				o.saw = present && len(ahead) == 0 || r.hopeful && !entered
			default:
				o.sent = to.now // it asks for itself
			}
			m.phase, m.along = gone, 0
			if !applied && m.passed && to.line().leftBy(int64(ticket), w.who[i].doubt, to.now >= m.deadline) {
				return "told that it left by itself, and was passed over"
			}
			return ""
		})
}

// leave takes the entry away; a client that holds believes so no longer.
func (r *rules) leave(w world, i int, out step) {
	if r.carries {
		r.carry(w, i, out)
		if w.who[i].along != 0 {
			return
		}
	}
	ticket := w.who[i].ticket
	w.who[i].phase, w.who[i].saw, w.who[i].seen = leaving, false, snapshot{}
	doubt := w
	doubt.who[i].doubt = true
	doubt.send(deed{who: i, what: "leaves"}, func(what deed, to world, wrong string) {
		if !w.who[i].doubt && to.who[i].phase == gone {
			to.who[i].doubt = false
		}
		out(what, to, wrong)
	}, func(to *world) { to.who[i].lateRemove = ticket },
		func(to *world) bool { return to.remove(r, i, ticket) },
		func(to *world, applied bool) string {
			m := &to.who[i]
			m.phase = gone
			expired := to.now >= m.deadline && !r.anyDoubt
			if !applied && m.passed && to.line().leftBy(int64(ticket), w.who[i].doubt, expired) {
				return "told that it left by itself, and was passed over"
			}
			return ""
		})
}

// wait looks, passes over, and goes in.
func (r *rules) wait(w world, i int, out step) {
	m := w.who[i]
	if m.saw {
		if w.now < m.deadline || r.noDeadline {
			to := w
			to.who[i].phase, to.who[i].saw = holding, false
			wrong := to.serve(i)
			out(deed{who: i, what: "goes in"}, to, wrong)
		}
		return
	}
	if (m.seen != snapshot{}) {
		w.send(deed{who: i, what: "passes over"}, out, func(to *world) { to.who[i].latePass = m.seen },
			func(to *world) bool { return to.w[i] == m.ticket && to.pass(r, m.seen) },
			func(to *world, _ bool) string { return r.look(to, i) })
		to := w
		to.who[i].seen = snapshot{}
		out(deed{who: i, what: "changes its mind"}, to, "") // or had no answer, and looks again
		return
	}
	to := w
	wrong := r.look(&to, i)
	out(deed{who: i, what: "looks"}, to, wrong)
}

func (r *rules) look(w *world, i int) string {
	m := &w.who[i]
	m.seen = snapshot{}
	ahead, present := w.ahead(i)
	if !present {
		r.lost(w, i)
		return ""
	}
	for _, j := range ahead {
		if w.now < w.b[j] {
			m.seen = snapshot{}
			m.saw = r.notFirst
			return ""
		}
		m.seen.w[j], m.seen.b[j] = w.w[j], w.b[j]
	}
	if m.saw = len(ahead) == 0 || r.noRemoval; m.saw {
		m.seen = snapshot{}
	}
	return ""
}

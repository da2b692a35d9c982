package ticket

import "slices"

// next are the steps that may follow a state.
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
	*m = member{phase: joining, sent: w.now, redrawn: true, lateRemove: m.lateRemove, lateNewcomer: m.lateNewcomer, latePass: m.latePass}
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

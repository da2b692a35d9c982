package ticket

import "slices"

// carry is leaving with a request that lets another client enter: the next one, which has
// not asked for a ticket by itself.
func (r *rules) carry(w world, i int, out step) {
	m := &w.who[i]
	j := int(m.newcomer) - 1
	if j < 0 {
		j = slices.IndexFunc(w.who[:r.members], func(m member) bool { return m.phase == fresh })
		if j < 0 || m.phase == leaving {
			return
		}
		w.who[j] = member{phase: joining, sent: w.now, carried: true}
	}
	ticket := m.ticket
	m.phase, m.saw, m.seen, m.newcomer = leaving, false, snapshot{}, int8(j+1)
	doubt := w
	doubt.who[i].doubt = true
	doubt.send(deed{who: i, what: "leaves, and lets the next one enter"}, func(what deed, to world, wrong string) {
		if !w.who[i].doubt && to.who[i].phase == gone {
			to.who[i].doubt = false
		}
		out(what, to, wrong)
	}, func(to *world) { to.who[i].lateRemove, to.who[i].lateNewcomer = ticket, int8(j+1) },
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
			m.phase, m.newcomer = gone, 0
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
		if w.who[i].newcomer != 0 {
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

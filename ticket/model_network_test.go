package ticket

// What the network makes of a request of the model.

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

// leaveLate delivers a late copy of a removal.
func (w *world) leaveLate(r *rules, i int) {
	m := &w.who[i]
	ticket, newcomer := m.lateRemove, m.lateNewcomer
	m.lateRemove, m.lateNewcomer = 0, 0
	if newcomer != 0 {
		w.carry(r, i, ticket, int(newcomer-1))
	} else {
		w.remove(r, i, ticket)
	}
}

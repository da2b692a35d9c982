package protocol

import "slices"

// What happens around those who wait: time, requests that come late, the
// operator, somebody who is not fair.

// fates walks what can become of one request: answered, its answer lost, on its
// way, answered while a copy is on its way.
func (m *queueModel) fates(w queueWorld, i int, req request, what string, out emit[queueWorld], answered func(*queueWorld, bool) string, lost func(*queueWorld)) {
	name := queueIDs[taker(w.who[i].entry)]
	on := w
	applied, wrong := on.apply(&m.queueRules, &req)
	gone := on
	if bad := answered(&on, applied); wrong == "" {
		wrong = bad
	}
	if wrong == "" && !applied && !w.faulty && req.kind != toEnd {
		wrong = "a write failed although nothing went wrong: " + what
	}
	out(name, what+yes(applied), on, wrong)
	if w.losses > 0 {
		gone.losses--
		gone.faulty = true
		lost(&gone)
		out(fault+name, what+yes(applied)+", the answer is lost", gone, "")
	}
	slot := slices.IndexFunc(w.late[:], func(q request) bool { return q.kind == noRequest })
	if w.copies == 0 || slot < 0 {
		return
	}
	on = w
	on.copies--
	on.faulty = true
	on.late[slot] = req
	also := on
	lost(&on)
	out(fault+name, what+": it is on its way, no answer", on, "")
	applied, wrong = also.apply(&m.queueRules, &req)
	if bad := answered(&also, applied); wrong == "" {
		wrong = bad
	}
	out(fault+name, what+yes(applied)+", a copy is on its way", also, wrong)
}

// world are the steps of everybody else.
func (m *queueModel) world(w queueWorld, out emit[queueWorld]) {
	it := &w.item
	if !m.noTime {
		on := w
		on.tick()
		if on != w {
			out("clock", "ticks", on, "")
		}
	}
	for slot := range w.late {
		if w.late[slot].kind == noRequest {
			continue
		}
		on := w
		on.late[slot] = request{}
		applied, wrong := on.apply(&m.queueRules, &w.late[slot])
		if applied {
			out(fault+"late", "a copy arrives (applied)", on, wrong)
		}
	}
	if w.breaks > 0 && it.by != 0 {
		on := w
		on.breaks--
		on.disorder, on.faulty = true, true
		on.grave = stamp{}
		on.item.stolen = it.held
		on.takeOut(on.item.queue.at(ownEntry(it.by)), -1)
		for i := range on.who {
			q := &on.who[i]
			q.broken = q.broken || (q.phase == having || q.phase == giving) && q.req.by == it.by && q.req.token == it.held || handed(q.entry) == it.by
		}
		on.free()
		out(fault+"operator", "breaks the hold", on, "")
	}
	switch {
	case w.aliens > 0 && w.alien == 0 && (it.by == 0 || it.age >= it.term && !m.clockless):
		on := w
		on.aliens--
		on.disorder, on.faulty = true, true
		if it.by != 0 {
			on.item.stolen = it.held
		}
		wrong := on.give(&m.queueRules, -1, stranger, it.token, 0, fullLease)
		on.item.token++
		on.alien, on.alienBase = 1, it.version
		out(fault+"stranger", "takes the lock", on, wrong)
	case w.alien == 1 && it.by == stranger:
		on := w
		on.alien = 2
		wrong := ""
		if w.alienBase != it.version {
			wrong = "a change is lost: the stranger's is based on an older read"
		}
		on.item.version++
		on.free()
		out("stranger", "commits", on, wrong)
	}
}

func older(age *int8) { *age = min(*age+1, oldest) }

// tick lets time pass for all.
func (w *queueWorld) tick() {
	if w.item.by != 0 {
		older(&w.item.age)
	}
	for slot := range w.late {
		if w.late[slot].kind != noRequest {
			older(&w.late[slot].age)
		}
	}
	for i := range w.who {
		q := &w.who[i]
		if !q.live() || q.phase == idle {
			continue
		}
		if q.left != forever {
			q.left = max(0, q.left-1)
		}
		older(&q.made)
		older(&q.unseen)
		older(&q.since)
		if q.asked >= 0 {
			older(&q.asked)
		}
		if q.beside.step > 0 {
			older(&q.beside.asked)
		}
		if q.beside.saw.by != 0 {
			older(&q.beside.saw.age)
		}
		if q.phase != having {
			older(&q.req.age)
		}
	}
}

// forget drops what cannot matter any more, so that worlds which differ in
// nothing else count as one.
func (w *queueWorld) forget() {
	for i := range w.who {
		q := &w.who[i]
		switch {
		case q.dead:
			*q = queuer{phase: q.phase, dead: true, entry: q.entry, asked: -1}
			if q.phase != away {
				q.phase = away
			}
		case q.phase == having || q.phase == giving:
			q.made, q.unseen, q.seen, q.since, q.term, q.asked = 0, 0, stamp{}, 0, 0, -1
			q.fresh, q.shown, q.beside, q.memory, q.stands = false, 0, beside{}, memory{}, false
		case q.phase == leaving:
			q.seen, q.since, q.term, q.asked, q.left = stamp{}, 0, 0, -1, 0
			q.fresh, q.shown, q.beside = false, 0, beside{}
			if !q.stands {
				q.unseen = 0
			}
		case q.phase == settling:
			q.made, q.unseen, q.seen, q.since, q.term, q.asked, q.left = 0, 0, stamp{}, 0, 0, -1, 0
			q.fresh, q.shown, q.beside, q.memory, q.stands = false, 0, beside{}, memory{}, false
		case q.phase == waiting:
			q.left = 0
			q.req = request{}
		}
	}
	if w.alien == 2 || w.alien == 1 && w.item.by != stranger {
		w.alien, w.alienBase = 2, 0
	}
}

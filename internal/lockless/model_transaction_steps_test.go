package lockless

import (
	"fmt"

	"github.com/dynahold/dynahold/internal/protocol"
)

// What the transactions of the model do, and what happens around them.

// next takes every step that is possible.
func (m *jointModel) next(w jointWorld, out emit[jointWorld]) {
	m.others(w, out)
	for i := range m.plans {
		name := "transaction " + ids[i+1]
		m.arrivals(w, i, name, out)
		switch w.who[i].phase {
		case fresh:
			m.touch(w, i, name, out)
		case ending:
			m.send(w, i, name, out)
		case looking:
			m.look(w, i, name, out)
		}
	}
}

// touch reads or locks another item, in any order, or sends if all are known.
func (m *jointModel) touch(w jointWorld, i int, name string, out emit[jointWorld]) {
	a := &w.who[i]
	missing := false
	for k := range m.items {
		p := m.plans[i][k]
		if a.known&(1<<k) != 0 || p == untouched || p == event {
			continue
		}
		missing = true
		on := w
		it, b := &on.items[k], &on.who[i]
		switch {
		case !p.held() && it.by == 0:
			b.known |= 1 << k
			b.runs[b.nth].base[k] = *it
			m.touched(on, i, k, name, "reads", out)
		case p.held() && it.by == 0 && it.exists:
			if it.token == 0 {
				it.token, it.stolen = 1, 0
			}
			it.by, it.held = int8(i+1), it.token
			it.token++
			b.known |= 1 << k
			b.runs[b.nth].base[k] = *it
			m.touched(on, i, k, name, "locks", out)
		}
	}
	if !missing {
		w.who[i].phase = ending
		out(name, "is ready to commit", w, "")
	}
}

// touched goes on with an item that was read or locked. One that remembers the id ends
// the call: the operation was applied before.
func (m *jointModel) touched(w jointWorld, i, k int, name, how string, out emit[jointWorld]) {
	if m.once && !m.noLookup && Remembers(jointCore, w.items[k].image(), jointOperation) {
		m.conclude(w, i, fmt.Sprintf("%s %s item %d, which remembers the id,", name, how, k), protocol.Committed, out)
		return
	}
	out(name, fmt.Sprintf("%s item %d", how, k), w, "")
}

// send sends the present request once more, if it has attempts left.
func (m *jointModel) send(w jointWorld, i int, name string, out emit[jointWorld]) {
	a := &w.who[i]
	if a.tries >= m.tries {
		m.conclude(w, i, name+" has no answer", protocol.Undecided, out)
		return
	}
	a.tries++
	// It never arrives, or not yet.
	on := w
	on.who[i].unsure = true
	out(name, "sends, and it is dropped", on, "")
	if r := &on.who[i].runs[a.nth]; r.late < m.copies {
		r.late++
		out(name, "sends, and it is late", on, "")
	}
	m.meet(w, i, name, out)
	if r := &w.who[i].runs[a.nth]; m.twice && r.late < m.copies {
		on = w
		on.who[i].runs[a.nth].late++ // a copy goes its own way, of which the answer does not tell
		m.answered(on, i, name+", twice,", out)
	}
	m.answered(w, i, name, out)
}

// answered goes on after a request that arrives.
func (m *jointModel) answered(w jointWorld, i int, name string, out emit[jointWorld]) {
	a := &w.who[i]
	failed, wrong := m.execute(&w, i, a.nth)
	on := w
	on.who[i].unsure = true
	out(name, "sends, and the answer is lost", on, wrong)
	if wrong != "" {
		return
	}
	if failed == 0 {
		w.who[i].phase = done
		m.given[protocol.Committed]++
		if !m.applied(&w, i) {
			wrong = "success is answered, but nothing is applied"
		}
		out(name, "sends, and is told that it is applied", w, wrong)
		return
	}
	m.conclude(w, i, name+" is refused", m.judge(&w, i, failed), out)
	m.again(w, i, failed, name, out)
}

// conclude checks a verdict, and ends the call with it. Without one, locks that it
// holds are released first, and tell.
func (m *jointModel) conclude(w jointWorld, i int, name string, v protocol.Verdict, out emit[jointWorld]) {
	a := &w.who[i]
	r := &a.runs[a.nth]
	a.phase = done
	m.given[v]++
	if v == protocol.Undecided {
		for k := range m.items {
			if m.plans[i][k].held() && a.known&(1<<k) != 0 {
				v = m.release(&w, i, k)
				break
			}
		}
		if v == protocol.Undecided {
			v = m.shown(&w, i)
		}
	}
	wrong := ""
	switch {
	case v == protocol.Committed && !m.applied(&w, i):
		wrong = "the verdict is committed, but the transaction is not applied"
	case v == protocol.Lost && r.applied:
		wrong = "the verdict is not applied, but the transaction is"
	}
	r.lost = r.lost || v == protocol.Lost
	for k := range m.items {
		if it := &w.items[k]; it.by == int8(i+1) && it.held == r.base[k].held && m.plans[i][k] != required {
			it.by, it.held = 0, 0 // what it still holds is given back
		}
	}
	out(name, fmt.Sprintf("and concludes %d", v), w, wrong)
}

// release is that of one item after a transaction without a verdict.
func (m *jointModel) release(w *jointWorld, i, k int) (v protocol.Verdict) {
	it, h := &w.items[k], m.holder(&w.who[i].runs[w.who[i].nth], i, k)
	if it.by == int8(i+1) && int64(it.held) == h.Token {
		it.by, it.held = 0, 0
		v = protocol.Lost
	} else if protocol.JudgeCommit(it.lock(), *h, it.exists, true) == protocol.Committed && m.plans[i][k] != lockedGone {
		v = protocol.Committed
	}
	if m.released != nil {
		v = m.released(v)
	}
	return v
}

// again starts another run, from the images of the items that failed.
func (m *jointModel) again(w jointWorld, i int, failed int8, name string, out emit[jointWorld]) {
	a := &w.who[i]
	v := m.judge(&w, i, failed)
	if a.nth+1 >= m.runs || v != protocol.Lost && (!m.againInDoub || v != protocol.Undecided) {
		return
	}
	for k := range m.items {
		if m.plans[i][k] == required && failed&(1<<k) != 0 {
			return // what is lost comes back in no other run
		}
	}
	r := &a.runs[a.nth]
	if r.applied {
		return // conclude has said what is wrong
	}
	r.lost = v == protocol.Lost
	next := &a.runs[a.nth+1]
	next.base = r.base
	for k := range m.items {
		p := m.plans[i][k]
		switch {
		case failed&(1<<k) == 0:
		case p.held(), w.items[k].by != 0:
			a.known &^= 1 << k // to be locked, or waited for and read, again
		default:
			next.base[k] = w.items[k]
		}
	}
	a.nth, a.tries, a.unsure, a.phase = a.nth+1, 0, false, fresh
	out(name, "is refused, and runs again", w, "")
}

// arrivals are late requests.
func (m *jointModel) arrivals(w jointWorld, i int, name string, out emit[jointWorld]) {
	for nth := range w.who[i].runs {
		if w.who[i].runs[nth].late == 0 {
			continue
		}
		on := w
		on.who[i].runs[nth].late--
		_, wrong := m.execute(&on, i, int8(nth))
		out("late request of "+name, "arrives", on, wrong)
	}
}

// others are writers and holders that are not judged here.
func (m *jointModel) others(w jointWorld, out emit[jointWorld]) {
	for k := range m.items {
		it := w.items[k]
		m.handles(w, k, out)
		if it.by >= byProgram {
			on := w
			on.items[k].by, on.items[k].held = 0, 0
			if it.by == byArticle {
				on.items[k].held = it.held
			}
			out("others", fmt.Sprintf("release item %d", k), on, "")
		}
		if w.events == 0 {
			continue
		}
		spent := w
		spent.events--
		on := spent
		at := &on.items[k]
		switch {
		case it.by != 0 && m.breaks && it.by < byProgram:
			at.stolen, at.by, at.held = it.held, 0, 0
			out("others", fmt.Sprintf("break the lock of item %d", k), on, "")
		case it.by != 0:
		case !it.exists:
			on.next++
			*at = jointItem{exists: true, ring: ids8{w.next}, last: w.next}
			out("others", fmt.Sprintf("create item %d", k), on, "")
		default:
			on.next++
			at.ring, at.last = ids8{w.next}, w.next
			out("others", fmt.Sprintf("write an event to item %d", k), on, "")
			for _, n := range []int{1, len(ids8{}) - 1} {
				on.items[k] = it
				for range n {
					at.ring = at.ring.push(w.next)
				}
				at.last = w.next
				out("others", fmt.Sprintf("write %d times to item %d", n, k), on, "")
			}
			if !m.keeps {
				on.items[k] = jointItem{}
				out("others", fmt.Sprintf("delete item %d", k), on, "")
			}
			on.next = w.next
			on.items[k] = it
			if it.token == 0 {
				at.token, at.stolen = 1, 0
			}
			at.by, at.held = byProgram, at.token
			at.token++
			out("others", fmt.Sprintf("lock item %d", k), on, "")
			if m.hands {
				on.items[k] = it
				at.by = byArticle
				out("others", fmt.Sprintf("lock item %d by hand", k), on, "")
			}
		}
	}
}

// handles are those of what a transaction requires: the same program may take the
// lock again, by another handle, when it was lost.
func (m *jointModel) handles(w jointWorld, k int, out emit[jointWorld]) {
	it := &w.items[k]
	for i := range m.plans {
		if m.plans[i][k] == required && it.by == 0 && it.exists {
			it.by, it.held = int8(i+1), it.token
			it.token++
			out("another handle of "+ids[i+1], fmt.Sprintf("locks item %d", k), w, "")
			return
		}
	}
}

package resources_test

import (
	"fmt"
	"slices"
)

// The clients.

// variant is what happens to a request.
type variant int

const (
	answered variant = iota
	delayed
	unanswered
	repeated
	arrives
	givesUp
	resent
	variantCount
)

var variantNames = [variantCount]string{"%s of %s is answered", "%s of %s goes late", "%s of %s is applied, if it can be, without an answer",

	"%s of %s is sent again and answered", "%s of %s arrives late", "%s of %s: no answer, gives up",
	"%s of %s is delivered twice, the second is answered"}

// named are the names of steps: they are looked up far more often than read.
var named = func() (names [variantCount][kindCount][maxHands]string) {
	for v := range names {
		for k := range names[v] {
			for of := range names[v][k] {
				what := fmt.Sprintf("job %d", of)
				if kind(k) >= take { // and breakPermit
					what = fmt.Sprintf("the permit of %c", 'A'+of)
				}
				names[v][k][of] = fmt.Sprintf(variantNames[v], kindNames[k], what)
			}
		}
	}
	return names
}()

func (v variant) of(q *request) string { return named[v][q.kind][q.of] }

var handNames = [maxHands]string{"A", "B", "C"}

// next takes all steps that are possible.
func (m *model) next(from *world, e emit) {
	step := func(who, what string, to world, wrong string) {
		if wrong == "" {
			wrong = m.check(&to)
		}
		if wrong == "" {
			m.tidy(&to)
		}
		e(who, what, to, wrong)
	}
	if from.now+1 < m.ticks {
		x := *from
		x.now++
		step("clock", "ticks", x, "")
	}
	for n := range m.jobs {
		m.produce(*from, n, step)
	}
	if m.operates && from.cut == 0 && !from.paused {
		x := *from
		x.cut = 1
		step("operator", "lowers the limit", x, "")
		x.cut, x.paused = 0, true
		step("operator", "pauses the resource", x, "")
	} else if from.paused {
		x := *from
		x.paused = false
		step("operator", "resumes the resource", x, "")
	}
	for i := range m.hands {
		m.arrivals(*from, i, step)
		switch h := &from.hands[i]; h.phase {
		case idle:
			m.look(from, i, step)
		case calling:
			m.goOn(from, i, step)
		case working:
			m.work(from, i, step)
		case waiting:
			if from.now > h.sent && !m.chosen(from, i) {
				m.call(*from, i, request{kind: take, of: int8(i), ends: from.now + m.lease}, step)
			}
			x := *from
			x.hands[i].drop()
			step(handNames[i], "stops waiting", x, "")
		case owes:
			x := *from
			if q := x.hands[i].call; q.kind == start {
				x.queued, x.running = x.queued-1, x.running+1
			} else {
				m.counted(&x, &q)
			}
			x.hands[i].phase = idle
			step(handNames[i], "counts", x, "")
			x = *from
			x.hands[i].drop()
			step(handNames[i], "dies between two requests", x, "")
		}
	}
}

type stepper func(who, what string, to world, wrong string)

// produce is the producer of a job.
func (m *model) produce(w world, n int, step stepper) {
	j := &w.jobs[n]
	if j.enq < 2 {
		x := w
		ok, wrong := m.enqueued(&x, n)
		// Not new, and not clean: an earlier attempt was applied.
		x.jobs[n].enq, x.jobs[n].acked = 2, ok || j.enq == 1
		step("producer", "Enqueue is answered", x, wrong)
	}
	switch j.enq {
	case 0:
		x := w
		x.jobs[n].enq, x.jobs[n].copy = 1, true
		step("producer", "Enqueue goes late", x, "")
	case 1:
		x := w
		x.jobs[n].enq = 2
		step("producer", "Enqueue: no answer, gives up", x, "")
	case 2:
		if m.repeats {
			x := w
			_, wrong := m.enqueued(&x, n)
			// New, or in the table already, or it was: it is enqueued.
			x.jobs[n].enq, x.jobs[n].acked = 3, true
			m.seen[sawAgain]++
			step("producer", "Enqueue of the same id", x, wrong)
		}
	}
	if j.copy {
		x := w
		x.jobs[n].copy = m.forgetful
		_, wrong := m.enqueued(&x, n)
		step("producer", "Enqueue arrives late", x, wrong)
	}
}

// arrivals are late requests of a hand.
func (m *model) arrivals(w world, i int, step stepper) {
	for n := range w.hands[i].late {
		if q := w.hands[i].late[n]; q.kind != none && (!q.kind.draws() || w.token < m.tokens) {
			x := w
			if ok, _, wrong := m.apply(&x, i, &q); ok {
				if m.split && q.kind.ends() && wrong == "" {
					continue // this mutant counts in its own request
				}
				step(handNames[i], arrives.of(&q), x, wrong)
			}
		}
	}
}

// look is a dispatcher that looks for work, and all else that begins.
func (m *model) look(w *world, i int, step stepper) {
	h := &w.hands[i]
	for n := range m.jobs {
		j := &w.jobs[n]
		q := request{of: int8(n), at: j.at, place: j.place, attempts: j.attempts, token: j.token, until: j.until, resource: w.token, ends: w.now + m.lease}
		over := w.now >= j.until || m.noLease
		switch {
		case j.at == inLine && w.token < m.tokens:
			q.kind = start
		case j.at == atWork && over && j.attempts < attempts && w.token < m.tokens:
			q.kind = takeover
		case j.at == atWork && over && j.attempts >= attempts:
			q.kind, q.resource, q.ends = bury, 0, 0
		case j.at == buried && w.operator > 0:
			x := *w
			x.operator--
			q := request{kind: requeue, of: int8(n), place: j.place}
			m.call(x, i, q, step)
			q.kind = discard
			m.call(x, i, q, step)
			continue
		default:
			continue
		}
		m.call(*w, i, q, step)
		if m.leaps && (q.kind == start || q.kind == takeover) && q.resource+1 < m.tokens {
			q.resource++ // the token is that of the clock, not the next one
			m.call(*w, i, q, step)
		}
	}
	if i < m.permits && !h.acquired && w.token < m.tokens {
		x := *w
		x.hands[i].acquired = true
		m.call(x, i, request{kind: take, of: int8(i), ends: w.now + m.lease}, step)
		if i < m.process {
			x.hands[i].phase, x.hands[i].sent = waiting, w.now
			step(handNames[i], "stands in line", x, "")
		}
	}
	m.breakOne(w, i, step)
	for k := range m.permits {
		if p := w.hands[k].permit; p != 0 && (w.now >= p || m.noLease) {
			m.call(*w, i, request{kind: sweep, of: int8(k), until: p}, step)
		}
	}
}

// chosen reports whether a permit is being passed on to a hand: it asks for none itself.
func (m *model) chosen(w *world, of int) bool {
	for i := range m.hands {
		if h := &w.hands[i]; h.phase == calling && h.call.to == int8(of+1) {
			return true
		}
	}
	return false
}

// breakOne is an operator who ends something by force, or cancels a job.
func (m *model) breakOne(w *world, i int, step stepper) {
	if w.breaks == 0 {
		return
	}
	x := *w
	x.breaks--
	for n := range m.jobs {
		j := &w.jobs[n]
		q := request{of: int8(n), at: j.at, place: j.place, attempts: j.attempts, token: j.token, until: j.until}
		switch j.at {
		case atWork:
			q.kind = breakJob
			m.call(x, i, q, step)
		case inLine:
			q.kind = cancel
			m.call(x, i, q, step)
		}
	}
	for k := range m.permits {
		if p := w.hands[k].permit; p != 0 && k != i {
			m.call(x, i, request{kind: breakPermit, of: int8(k), until: p}, step)
		}
	}
}

// work is a hand that holds something, and may be past its deadline.
func (m *model) work(w *world, i int, step stepper) {
	h := &w.hands[i]
	if h.onPermit {
		m.call(*w, i, request{kind: release, of: int8(i)}, step)
		for k := range m.process {
			if o := &w.hands[k]; i < m.process && o.phase == waiting && w.now < h.deadline && (!o.unsure || m.passToUnsure) && !m.chosen(w, k) {
				m.call(*w, i, request{kind: pass, of: int8(i), to: int8(k + 1), ends: w.now + m.lease}, step)
			}
		}
		if m.renewals && w.now < h.deadline && w.now+m.lease > h.deadline {
			m.call(*w, i, request{kind: extend, of: int8(i), ends: w.now + m.lease}, step)
		}
	} else {
		q := request{of: h.job, place: h.place, attempts: h.attempts, token: h.token}
		for _, q.kind = range [...]kind{done, fail, returnJob} {
			if q.kind == done && !m.noDone || q.kind != done && m.fails {
				m.call(*w, i, q, step)
			}
		}
		if m.renewals && w.now < h.deadline && w.now+m.lease > h.deadline {
			q.kind, q.ends = renew, w.now+m.lease
			m.call(*w, i, q, step)
		}
	}
	x := *w
	x.hands[i].drop()
	step(handNames[i], "dies", x, "")
}

// drop forgets what a hand does and holds.
func (h *hand) drop() {
	*h = hand{late: h.late, permit: h.permit, acquired: h.acquired, unsure: h.unsure, evicted: h.evicted}
}

// room is where a hand keeps one more late request; -1: there is none.
func (m *model) room(h *hand) int {
	for n := range m.late {
		if h.late[maxLate-1-n].kind == none {
			return maxLate - 1 - n
		}
	}
	return -1
}

// number makes a request one that no late one is equal to.
func (h *hand) number(q *request) {
	for q.try = 0; slices.ContainsFunc(h.late[:], func(l request) bool { l.applied = false; return l == *q }); q.try++ {
	}
}

package semaphore_test

import (
	"fmt"
	"slices"
	"strings"
)

// The promises, as they break.
const (
	overTheLimit = "more is started than the limit"
	twoAtOnce    = "more work at once than the limit"
	twoOnOne     = "two work on one job"
	jobGone      = "a job is worked on that others took for dead"
	permitGone   = "a permit is used that others took for dead"
	notCounted   = "counters are not those of the rows"
	lostJob      = "a job is lost that was acknowledged"
	others       = "a job is ended that others work on"
	comesBack    = "a job comes back that was done"
	isTwice      = "a job is in the table twice"
	appliedTwice = "a transaction is applied twice"
	tokenTwice   = "a token is given out twice"
	oldToken     = "somebody begins to work under a token that is not the greatest"
	falseLoss    = "told lost, and it has not"
	falseSuccess = "told success, and it has not"
	unworked     = "a job is given up that nobody has worked on"
)

// Bounds of a world.
const (
	maxJobs  = 2
	maxHands = 3
	maxLate  = 2 // requests of one hand that may be on the way late
	attempts = 2 // Config.Retry.Attempts
)

// Where a job is. Its row and its dead letter are one here; that they never
// are two is one of the promises.
const (
	nowhere int8 = iota
	inLine       // queued
	atWork       // running
	buried       // in the dead letters
)

// modelJob is a job's row.
type modelJob struct {
	at       int8
	place    int8 // sort key: the place in line, last known also of a dead letter
	attempts int8
	token    int8 // of the last start at this place, also after Return
	until    int8

	// Of its producer.
	enq     int8 // 0: not sent; 1: sent, without an answer; 2: over
	copy    bool // a late Enqueue is on the way
	applied bool
	acked   bool // told success

	// Not in the table.
	over   bool // done or discarded
	worked bool // somebody has had it within a lease; kept for rules.unworked only
}

type kind int8

const (
	none kind = iota
	start
	takeover
	done
	fail
	giveBack // Return
	bury
	requeue
	discard
	renew
	take // Acquire; UpdateItems from here on
	release
	sweep
	extend // renewal of a permit
	draw   // the token of a permit that was found, and its next end
	kindCount
)

// transacted requests carry a ClientRequestToken.
func (k kind) transacted() bool { return k < renew }
func (k kind) ends() bool       { return k == done || k == fail || k == giveBack }

var kindNames = [...]string{"", "start", "takeover", "Done", "Fail", "Return", "bury", "Requeue", "Discard", "renewal", "Acquire", "Release", "sweep", "renewal", "fence"}

// request is what is in one: what its sender has seen, and what it writes.
type request struct {
	kind     kind
	of       int8 // the job, or whose permit
	at       int8 // as it was seen
	place    int8
	attempts int8
	token    int8
	until    int8
	resource int8 // token of the resource, as it was seen
	ends     int8 // until that it writes
	try      int8 // a call that was given up is not the next one
	applied  bool // it was; kept where the service does not remember
}

// Phases of a hand.
const (
	idle    int8 = iota
	calling      // sent, without an answer; or to be sent, if not in doubt
	working
	waiting // Acquire, between tries
	owes    // split: the second request is to be sent
)

// hand is a process: a dispatcher and its handler, one that wants a permit, an
// operator. One that dies is followed by a new one; what it sent stays.
type hand struct {
	phase    int8
	call     request
	sent     int8
	doubt    bool // an attempt of the call has no answer
	applied  bool // the call was
	job      int8 // that it holds
	onPermit bool // what it holds is its permit
	token    int8
	attempts int8
	place    int8
	deadline int8
	late     [maxLate]request

	permit   int8 // attribute p_<id> of the resource: until when; 0 if absent
	acquired bool // its one id is used up
}

// world is a state of everything, for one resource.
type world struct {
	now int8

	queued, running, dead, token int8 // of the resource

	top      int8 // greatest token that somebody has worked under
	operator int8 // Requeues and Discards that are still to come
	jobs     [maxJobs]modelJob
	hands    [maxHands]hand
}

// rules are the bounds of a search, and the rules that a mutant breaks.
type rules struct {
	jobs, hands  int
	limit        int8
	ticks, lease int8 // moments of the clock
	tokens       int8 // that a resource may give out
	late         int  // late requests of one hand
	operator     int8
	enqueue      bool // the jobs are enqueued; else they are in line from the start
	permits      int  // hands that want a permit
	renewals     bool
	fails        bool // Fail and Return, beside Done
	noDone       bool
	forgetful    bool // the service does not remember ClientRequestTokens
	waits        bool // Acquire tries again later
	conflicts    bool // a start is sent again after conflicts with other transactions

	unworked bool // also promised: nothing is buried that nobody has worked on

	// Mutants.
	noLimit, unseen, noOwn, takeoverCounts, failKeepsRunning, split, blindSweep, blindRelease,
	noLease, buryNotDead, doneKeepsRunning, returnNotQueued, sameToken,
	hastyLost, hopeful, noDeadline,
	fromLastTry, // a permit that an earlier try took keeps its end; the deadline is of the later try
	fromLastStart, // the deadline of a start after conflicts counts from its last request
	blindDraw bool // a fence may move the end back
}

// sight is something that a model should come to.
type sight int

const (
	sawDone sight = iota
	sawFail
	sawReturn
	sawLost
	sawUnknown
	sawBesides // told success by the deadline, not by an answer
	sawTakeover
	sawBury
	sawRequeue
	sawDiscard
	sawFound // a start or a permit of an earlier attempt
	sawBusy
	sawPermit
	sawRelease
	sawSweep
	sawRenewal
	sawLateEnd // Done after the deadline, and in time
	sightCount
)

var sightNames = [sightCount]string{"done", "failed", "returned", "lost", "unknown", "success by deadline", "takeover", "buried", "requeued",
	"discarded", "found started", "busy", "permit", "released", "swept", "renewed", "late end"}

type sights [sightCount]int

func (s sights) String() string {
	var out []string
	for i, n := range s {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %d", sightNames[i], n))
		}
	}
	return strings.Join(out, ", ")
}

// model is a search under way.
type model struct {
	rules
	seen sights
}

func (m *model) begin() (w world) {
	w.operator = m.operator
	for j := range m.jobs {
		if !m.enqueue {
			w.jobs[j] = modelJob{at: inLine, enq: 2, acked: true}
			w.queued++
		}
	}
	for j := m.jobs; j < maxJobs; j++ {
		w.jobs[j].enq = 2
	}
	return w
}

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
	case j.at != nowhere && j.at != buried && j.place == 0:
		return false, "" // its id is not new
	case j.over:
		wrong = comesBack
	case j.at != nowhere:
		wrong = isTwice
	}
	j.at, j.place, j.attempts, j.token, j.until, j.applied = inLine, 0, 0, 0, 0, true
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
		if held = m.asSeen(j, q); !held || w.token != q.resource || q.kind == start && w.running >= m.limit && !m.noLimit {
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
	case done, fail, giveBack:
		if !m.own(j, q) {
			return false, false, ""
		}
		if j.token != q.token {
			wrong = others
		}
		j.until = 0
		switch {
		case q.kind == done:
			*j = modelJob{enq: j.enq, copy: j.copy, applied: j.applied, acked: j.acked, over: true}
		case q.kind == giveBack:
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
			*j = modelJob{enq: j.enq, copy: j.copy, applied: j.applied, acked: j.acked, over: true}
			break
		}
		j.at, j.attempts, j.place = inLine, 0, q.place+1
		w.queued++
	case renew:
		if !m.own(j, q) || j.until >= q.ends {
			return false, false, ""
		}
		j.until = q.ends
	case take:
		if h.permit != 0 || w.running >= m.limit && !m.noLimit {
			return false, false, ""
		}
		h.permit = q.ends
		w.running++
		w.token++
	case release:
		if h.permit == 0 && !m.blindRelease {
			return false, false, ""
		}
		h.permit = 0
		w.running--
	case sweep:
		p := &w.hands[q.of].permit
		if *p != q.until && !m.blindSweep {
			return false, false, ""
		}
		*p = 0
		w.running--
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

// counted is what the end of a job does to its resource.
func (m *model) counted(w *world, q *request) {
	if keeps := q.kind == fail && m.failKeepsRunning || q.kind == done && m.doneKeepsRunning; !keeps {
		w.running--
	}
	switch {
	case q.kind == fail && q.attempts >= attempts:
		w.dead++
	case q.kind == fail, q.kind == giveBack && !m.returnNotQueued:
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
	if h.phase == calling && h.call == was {
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
			case done, fail, giveBack, renew:
				if j := &w.jobs[q.of]; !m.noOwn && (j.at != atWork || j.token != q.token) {
					*q = request{}
				}
			case bury:
				if !m.unseen && !m.asSeen(&w.jobs[q.of], q) {
					*q = request{}
				}
			case release, extend, sweep, draw:
				of := &w.hands[q.of]
				if gone := of.permit == 0 || q.kind == sweep && of.permit > q.until || q.kind == extend && of.permit >= q.ends; gone && of.settled() && !m.blindSweep && !m.blindRelease {
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
func (h *hand) settled() bool {
	return h.acquired && h.call.kind != take && h.phase != waiting && !slices.ContainsFunc(h.late[:], func(l request) bool { return l.kind == take })
}

// order puts late requests in one order, the empty ones last.
func (q *request) order() int {
	if q.kind == none {
		return 1 << 40
	}
	n := 0
	for _, v := range [...]int8{int8(q.kind), q.of, q.resource, q.token, q.until, q.ends, q.try} {
		n = n<<5 | int(v)
	}
	return n
}

// check is the promise that a state breaks.
func (m *model) check(w *world) string {
	var queued, running, dead, held int8
	owing := false
	for n := range m.jobs {
		j := &w.jobs[n]
		switch j.at {
		case inLine:
			queued++
		case atWork:
			running++
		case buried:
			dead++
		}
		switch {
		case j.acked && !j.over && j.at == nowhere:
			return lostJob
		case j.over && j.at != nowhere:
			return comesBack
		}
	}
	gone := ""
	for i := range m.hands {
		h := &w.hands[i]
		if h.permit != 0 {
			running++
		}
		owing = owing || h.phase == owes || h.phase == calling && m.split
		if !h.within(w) {
			continue
		}
		held++
		switch j := &w.jobs[h.job]; {
		case h.onPermit && h.permit == 0:
			gone = permitGone
		case !h.onPermit && (j.at != atWork || j.token != h.token):
			gone = jobGone
		}
		for k := range i {
			if o := &w.hands[k]; o.within(w) && !o.onPermit && !h.onPermit && o.job == h.job {
				return twoOnOne
			}
		}
	}
	switch {
	case running > m.limit:
		return overTheLimit
	case held > m.limit:
		return twoAtOnce
	case !owing && (queued != w.queued || running != w.running || dead != w.dead):
		return notCounted
	}
	return gone
}

// within reports whether a hand works, and within its lease.
func (h *hand) within(w *world) bool {
	switch {
	case w.now >= h.deadline:
		return false
	case h.phase == calling:
		return h.call.kind == renew || h.call.kind == extend
	}
	return h.phase == working
}

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
	variantCount
)

var variantNames = [variantCount]string{"%s of %s is answered", "%s of %s goes late", "%s of %s is applied, if it can be, without an answer",
	"%s of %s is sent again and answered", "%s of %s arrives late", "%s of %s: no answer, gives up"}

// named are the names of steps: they are looked up far more often than read.
var named = func() (names [variantCount][kindCount][maxHands]string) {
	for v := range names {
		for k := range names[v] {
			for of := range names[v][k] {
				what := fmt.Sprintf("job %d", of)
				if kind(k) >= take {
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
			if from.now > h.sent {
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
		if q := w.hands[i].late[n]; q.kind != none && (q.kind != take && q.kind != draw || w.token < m.tokens) {
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
	}
	if i < m.permits && !h.acquired && w.token < m.tokens {
		x := *w
		x.hands[i].acquired = true
		m.call(x, i, request{kind: take, of: int8(i), ends: w.now + m.lease}, step)
	}
	for k := range m.permits {
		if p := w.hands[k].permit; p != 0 && (w.now >= p || m.noLease) {
			m.call(*w, i, request{kind: sweep, of: int8(k), until: p}, step)
		}
	}
}

// work is a hand that holds something, and may be past its deadline.
func (m *model) work(w *world, i int, step stepper) {
	h := &w.hands[i]
	if h.onPermit {
		m.call(*w, i, request{kind: release, of: int8(i)}, step)
		if m.renewals && w.now < h.deadline && w.now+m.lease > h.deadline {
			m.call(*w, i, request{kind: extend, of: int8(i), ends: w.now + m.lease}, step)
		}
	} else {
		q := request{of: h.job, place: h.place, attempts: h.attempts, token: h.token}
		for _, q.kind = range [...]kind{done, fail, giveBack} {
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
	*h = hand{late: h.late, permit: h.permit, acquired: h.acquired}
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

// call begins a call.
func (m *model) call(w world, i int, q request, step stepper) {
	h := &w.hands[i]
	h.number(&q)
	h.call, h.sent, h.doubt, h.applied, h.phase = q, w.now, false, false, calling
	if q.kind.ends() || q.kind == bury || q.kind == requeue || q.kind == discard || q.kind == release || q.kind == sweep {
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
	if (q.kind == take || q.kind == draw) && w.token >= m.tokens {
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
	step(handNames[i], givesUp.of(&q), x, "")
}

// resume goes on with work after a renewal.
func (h *hand) resume() {
	h.phase, h.call, h.doubt, h.applied, h.sent = working, request{}, false, false, 0
}

// hold gives a hand what it has started or acquired, from the time sent on.
func (m *model) hold(w *world, i int, to hand) string {
	h := &w.hands[i]
	to.late, to.permit, to.acquired, to.phase = h.late, h.permit, h.acquired, working
	*h = to
	if w.now >= to.deadline {
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
		case held && w.token != q.resource && w.token < m.tokens: // only the token was another
			again := *q
			again.resource, again.ends = w.token, w.now+m.lease
			h.number(&again)
			h.call, h.sent, h.doubt, h.applied = again, w.now, false, false
		default:
			m.seen[sawBusy]++
			h.drop()
		}
		return ""
	case done, fail, giveBack, release:
		success := ok
		switch {
		case ok:
			m.seen[map[kind]sight{done: sawDone, fail: sawFail, giveBack: sawReturn, release: sawRelease}[q.kind]]++
			if late {
				m.seen[sawLateEnd]++
			}
		case clean || m.hastyLost:
			m.seen[sawLost]++
			if was {
				wrong = falseLoss
			}
		case !late || m.noDeadline: // before the deadline nobody else can have ended it
			m.seen[sawBesides]++
			success = true
		default:
			m.seen[sawUnknown]++
		}
		if success && !was {
			wrong = falseSuccess
		}
		h.drop()
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
		switch {
		case ok:
			m.seen[sawPermit]++
			return m.hold(w, i, hand{onPermit: true, token: w.token, deadline: sent + m.lease})
		case h.permit != 0: // by an earlier attempt, or by one of an earlier try
			m.seen[sawFound]++
			h.call, h.doubt, h.applied = request{kind: draw, of: int8(i), ends: w.now + m.lease}, false, false
			h.number(&h.call)
			if h.sent = w.now; m.fromLastTry {
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
	default:
		if ok {
			m.seen[map[kind]sight{bury: sawBury, requeue: sawRequeue, discard: sawDiscard, sweep: sawSweep}[q.kind]]++
		}
		h.drop()
	}
	return wrong
}

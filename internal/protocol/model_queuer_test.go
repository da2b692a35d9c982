package protocol

// The queue on the item, seen from those who wait in it.

type queuePhase int8

const (
	idle queuePhase = iota
	drawing
	waiting
	passing // a request to take the lock over is to be sent
	having
	giving // the write that ends the hold is to be sent
	leaving
	settling // the request that confirms a hold that never ends is to be sent
	away
)

// queuer is a process that acquires the lock, once or more.
type queuer struct {
	phase   queuePhase
	turns   int8 // acquisitions still to come
	dead    bool
	entry   int8
	made    int8 // age of the draw's bytes
	unseen  int8 // age of the last request whose answer did not show the lock as ours
	asked   int8 // age of the read under way; -1: none
	fresh   bool // it was sent after the newest answer that is believed had come
	shown   int8 // lockToken, as that answer shows it
	beside  beside
	seen    stamp
	since   int8 // age of the first answer that showed it
	term    int8 // of what is watched
	left    int8 // ticks until the own deadline
	claimed bool // lockTime is of its own making
	broken  bool // by the operator: nobody promises anything
	had     bool // it has had the lock in this acquisition
	unsure  bool // an attempt of the present request had no answer
	stands  bool // its enqueue was answered: it is in the queue
	late    bool // it leaves because a look beside its draw has shown it there
	back    bool // it draws again when it has left
	place   int8 // where its entry was last seen
	memory  memory
	req     request
}

func (q *queuer) live() bool   { return !q.dead && q.phase != away }
func (q *queuer) inLine() bool { return q.phase == waiting || q.phase == drawing || q.phase == passing }

// believes tells whether it acts as the holder.
func (q *queuer) believes() bool {
	return q.live() && q.phase == having && q.left > 0 && !q.broken
}

// queueWorld is a state of everything.
type queueWorld struct {
	item             queueItem
	who              [queuers]queuer
	late             [2]request // copies that are on their way
	alien            int8       // the acquirer that is not fair: 1 holds, 2 is done
	alienBase        int8
	grave            stamp         // the hold of one who has died, which nobody may take over
	last             int8          // the last token of a hold
	first            [entries]int8 // the first ticket of an entry
	applied, refused [entries]bool
	disorder         bool // the lock may be free while somebody waits
	faulty           bool // something went wrong: writes may fail

	losses, copies, deaths, leaves, breaks, aliens, hedges int8
}

type queueModel struct {
	queueRules
	given  verdicts
	wasted int
}

func (m *queueModel) start() queueWorld {
	w := queueWorld{item: queueItem{token: 1}, losses: m.losses, copies: m.copies, deaths: m.deaths, leaves: m.leaves, breaks: m.breaks, aliens: m.alien, hedges: m.hedges, faulty: !m.noTime || m.alike}
	for i := range w.who {
		w.who[i] = queuer{phase: away}
		if i < m.members {
			w.who[i] = queuer{turns: m.turns, entry: int8(i * draws), asked: -1}
			if i == 1 && m.twice {
				w.who[i].turns++
			}
		}
	}
	return w
}

const fault = "!" // begins the names of steps that nobody may wait for

func (m *queueModel) next(w queueWorld, emit emit[queueWorld]) {
	out := func(who, what string, to queueWorld, wrong string) {
		to.forget()
		if wrong == "" {
			wrong = m.wrong(&to)
		}
		emit(who, what, to, wrong)
	}
	m.world(w, out)
	for i := range m.members {
		if i > 0 && w.who[i].phase == idle && w.who[i-1].phase == idle && w.who[i].turns == m.turns && w.who[i-1].turns == m.turns {
			break // they are alike: in order
		}
		if w.who[i].live() {
			m.act(w, i, out)
		}
	}
}

// wrong checks what must hold in every state.
func (m *queueModel) wrong(w *queueWorld) string {
	believers := 0
	if w.alien == 1 && w.item.by == stranger && w.item.age < w.item.term {
		believers++
	}
	for i := range w.who {
		if w.who[i].believes() {
			believers++
		}
		q := &w.who[i]
		if w.item.by == 0 && !w.disorder && q.live() && q.inLine() && w.item.queue.at(q.entry) >= 0 {
			return "the lock is free while somebody waits"
		}
	}
	if believers > 1 {
		return "two believe that they hold"
	}
	return ""
}

// act is what a process may do next.
func (m *queueModel) act(w queueWorld, i int, out emit[queueWorld]) {
	q := &w.who[i]
	name := queueIDs[taker(q.entry)]
	if w.deaths > 0 && q.phase != idle {
		on := w
		on.deaths--
		on.faulty = true
		on.who[i].dead = true
		if m.closed && q.had && !q.broken && w.item.by == q.req.by && w.item.held == q.req.token {
			on.grave = w.item.stamp()
		}
		out(fault+name, "dies", on, "")
	}
	if w.leaves > 0 && q.inLine() && (q.phase != drawing || q.unsure) {
		on := w
		on.leaves--
		on.faulty = true
		l := &on.who[i]
		l.phase, l.turns, l.unsure = leaving, 0, false
		l.req = request{kind: toLeave, entry: l.entry, place: l.place}
		out(fault+name, "wants to leave", on, "")
	}
	switch q.phase {
	case idle:
		q.phase, q.turns, q.made, q.unseen = drawing, q.turns-1, 0, 0
		q.req = request{kind: toDraw, entry: q.entry}
		out(name, "begins", w, "")
	case drawing, passing, giving, leaving:
		m.lookLate(w, i, out)
		m.send(w, i, out)
	case waiting:
		m.read(w, i, out)
		if m.looks {
			m.lookBeside(w, i, out)
		}
	case having:
		m.have(w, i, out)
	case settling:
		m.settle(w, i, out)
	}
}

// lookLate looks at the item while a draw has had no answer, which may be on its way or
// arrive yet. The place that it shows may be another's.
func (m *queueModel) lookLate(w queueWorld, i int, out emit[queueWorld]) {
	q, it := &w.who[i], &w.item
	if q.phase != drawing || !q.unsure || it.by != taker(q.entry) && m.find(&it.queue, q.entry) < 0 {
		return
	}
	if m.believesLate {
		m.remember(q, it)
	}
	m.see(&w, i, 0)
	q.late = q.phase == leaving
	out(queueIDs[taker(q.entry)], "has no answer, and looks", w, "")
}

// read asks for the item, and is answered then or later.
func (m *queueModel) read(w queueWorld, i int, out emit[queueWorld]) {
	name := queueIDs[taker(w.who[i].entry)]
	if w.who[i].asked < 0 {
		w.who[i].asked, w.who[i].fresh = 0, m.looks
		if m.looks && m.fromSent {
			w.who[i].unseen = 0
		}
		if !m.quick {
			out(name, "asks", w, "")
			return
		}
	}
	asked := w.who[i].asked
	w.who[i].asked = -1
	if m.believe(&w.who[i], w.item.token, w.who[i].fresh) {
		m.seeItem(&w, i, &w.item, asked)
	}
	out(name, "is answered", w, "")
}

// see is what a process makes of the answer to a write that was sent that long ago.
func (m *queueModel) see(w *queueWorld, i int, asked int8) {
	m.believe(&w.who[i], w.item.token, true)
	if w.who[i].phase == drawing {
		w.who[i].seen, w.who[i].term = stamp{}, 0
	}
	m.seeItem(w, i, &w.item, asked)
}

// seeItem is what it makes of an answer that shows the item so.
func (m *queueModel) seeItem(w *queueWorld, i int, it *queueItem, asked int8) {
	q := &w.who[i]
	q.unsure = false
	e := q.entry
	place := m.find(&it.queue, e)
	switch {
	case it.by == taker(e):
		m.hold(w, i, it, max(0, fullLease-q.made))
		return
	case isHanded(it.by) && m.same(ownEntry(it.by), e) && m.certain(q, it):
		if m.closed && !m.unsettled {
			q.phase, q.req = settling, request{kind: toClaim, entry: e, by: it.by, token: it.held}
			return
		}
		left := graceTime - q.unseen
		if m.fromSeen {
			left = graceTime
		}
		if !m.clockless && !m.noClock {
			left = min(left, it.term-it.age)
		}
		m.hold(w, i, it, max(0, left))
		return
	}
	switch {
	case place < 0 && m.stayPut:
		q.phase, q.unseen = waiting, asked
		return
	case place < 0: // passed over
		m.again(w, i)
		return
	case !m.certain(q, it): // the place may be another's
		q.phase, q.back = leaving, true
		q.req = request{kind: toLeave, entry: e, place: place}
		return
	}
	m.remember(q, it)
	q.phase, q.unseen, q.place = waiting, asked, place
	if s := it.stamp(); q.seen != s || q.term == 0 {
		q.seen, q.since, q.term = s, 0, it.term
		if m.earlyWatch {
			q.since = asked
		}
	}
	// The steps by which those behind wait longer are short, and whoever does not
	// run, or has no answer, misses its own: anybody may come first.
	term := q.term
	if m.hasty {
		term--
	}
	dead := it.by == 0 || q.since >= term || !m.clockless && it.age >= it.term
	if dead {
		q.phase = passing
		q.req = request{kind: toPass, entry: e, place: place, seen: q.seen, behind: -1, robs: it.by != 0 && it.held > it.stolen}
		if own := m.find(&it.queue, ownEntry(it.by)); own > place && q.req.robs {
			q.req.behind = own
		}
	}
}

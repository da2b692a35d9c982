package protocol

import "github.com/dynahold/dynahold/internal/stored"

// The queue on the item, seen from the service: the item, and what each request
// does to it under which condition. Times are ages, in ticks, up to the one
// from which they make no difference, so that time has no end.

const (
	queuers   = 3
	draws     = 2               // by each of them: one more acquisition, or again after it was passed over
	entries   = queuers * draws // every draw has an id of its own
	fullLease = 2               // in ticks
	graceTime = 1
	oldest    = fullLease
	stranger  = 2*entries + 1 // in lockedBy: an acquirer that is not fair
	forever   = 100           // the term of a hold that never ends, and the time that its holder has left
)

// lockedBy: entry e has taken the lock as e+1, and was handed it as e+1+entries.
func taker(e int8) int8  { return e + 1 }
func handed(e int8) int8 { return e + 1 + entries }

func isHanded(by int8) bool { return by > entries && by <= 2*entries }

// ownEntry is the entry that belongs to what lockedBy says; -1: none.
func ownEntry(by int8) int8 {
	switch {
	case by == 0 || by == stranger:
		return -1
	case by > entries:
		return by - 1 - entries
	}
	return by - 1
}

var queueIDs = [...]string{"", "A#1", "A#2", "B#1", "B#2", "C#1", "C#2", "next#A1", "next#A2", "next#B1", "next#B2", "next#C1", "next#C2", "stranger"}

// queueItem is the item. Times: age is how long ago the request was made that
// wrote lockTime, which is term later.
type queueItem struct {
	by, age, term int8
	beat          int8 // grows with lockTime, within a hold
	held, stolen  int8
	token         int8 // the next one
	version       int8
	queue         list
}

func (it *queueItem) lock() stored.Record {
	return stored.Record{By: queueIDs[it.by], Timed: it.by != 0, Held: int64(it.held), Token: int64(it.token), Stolen: int64(it.stolen)}
}

// stamp is what a watcher compares.
type stamp struct{ by, beat, held int8 }

func (it *queueItem) stamp() stamp { return stamp{it.by, it.beat, it.held} }

// kind of a request.
type reqKind int8

const (
	noRequest reqKind = iota
	toDraw
	toEnd // commit or release, with what becomes of the lock
	toPass
	toLeave
	toClaim
)

// request is the bytes of a request, and how old they are.
type request struct {
	kind   reqKind
	age    int8
	entry  int8
	by     int8 // Own
	token  int8
	to     int8 // hand over to this entry; -1: nobody waits
	place  int8 // of it, or of the own entry
	own    int8 // the place of the own entry of who ends its hold; -1: it has none
	drawn  int8 // lockToken, where nobody waits
	writes bool // carries a change
	base   int8 // the version that it is based on
	beat   int8 // of the hold when the bytes were made
	due    bool // lockTime was past then
	seen   stamp
	behind int8 // the place of the dead holder's entry behind the own one; -1: there is none
	robs   bool // a dead holder is taken over from, under a token: those ahead go
}

// queueRules are the bounds of a search, and the rules that a mutant breaks.
type queueRules struct {
	members                                       int
	turns                                         int8 // acquisitions of each
	losses, copies, deaths, leaves, breaks, alien int8
	hedges                                        int8 // writes that end a hold, sent twice by their holder
	noTime                                        bool // no lease ends: nothing can go wrong
	clockless                                     bool
	quick                                         bool // no read takes time, and no hold is claimed
	looks                                         bool // two looks of one who waits are under way at once
	closed                                        bool // no hold ends by itself once its holder has it, and the row goes with its last one
	alike                                         bool // B's last entry has the same bytes as A's first
	twice                                         bool // B has one turn more than the others

	drawAgain, handBlind, freeBlind, passBlind, leaveBlind, fromSeen bool
	ownWithoutHeld, silentPass, noClock, ticketToken, silentClaim    bool
	numbersAsLast, earlyWatch, leaveAhead, hasty, stayPut            bool
	anyOrder, fromSent                                               bool
	unsettled, settleBlind, releaseOnce                              bool
	drawHeld, believesThere, trusts, leaveMoves                      bool
	leaveAny, robsFree, hedgeClean, believesLate                     bool
}

// term is how long a hold lasts that its holder has taken, or confirmed.
func (r *queueRules) term() int8 {
	if r.closed {
		return forever
	}
	return fullLease
}

// give begins a hold.
func (w *queueWorld) give(r *queueRules, e, by, held, age, term int8) (wrong string) {
	it := &w.item
	it.by, it.held, it.age, it.term, it.beat = by, held, age, term, 0
	if held <= w.last {
		wrong = "a token does not grow"
	}
	w.last = held
	if w.grave.by != 0 {
		wrong = "a lock that never ends was taken from a dead holder"
	}
	if e < 0 {
		return wrong
	}
	defer func() { w.first[e] = 0 }() // it is served; should its draw arrive again, that is a new one
	for i := range w.who {
		q := &w.who[i]
		if q.live() && q.inLine() && q.entry != e && it.queue.at(q.entry) >= 0 && w.first[q.entry] != 0 && w.first[q.entry] < w.first[e] &&
			(!w.disorder || isHanded(by)) {
			return "somebody who came earlier and is alive was not served first"
		}
	}
	return wrong
}

// free ends a hold.
func (w *queueWorld) free() {
	it := &w.item
	it.by, it.held, it.age, it.term, it.beat = 0, 0, 0, 0, 0
}

func (w *queueWorld) own(r *queueRules, q *request) bool {
	return w.item.by == q.by && w.item.by != 0 && (w.item.held == q.token || r.ownWithoutHeld)
}

// inTime: lockTime is later than the time in the bytes.
func (w *queueWorld) inTime(q *request) bool { return !q.due || w.item.beat != q.beat }

// fits tells whether the queue is as the end of a hold expects.
func (w *queueWorld) fits(r *queueRules, q *request) bool {
	if q.to >= 0 {
		return r.same(w.item.queue.entry(q.place), q.to) || r.handBlind
	}
	return w.item.token == q.drawn || r.freeBlind
}

// apply delivers a request.
func (w *queueWorld) apply(r *queueRules, q *request) (applied bool, wrong string) {
	it := &w.item
	switch q.kind {
	case toDraw:
		if r.find(&it.queue, q.entry) >= 0 && !r.drawAgain || r.same(ownEntry(it.by), q.entry) && !r.drawHeld {
			return false, ""
		}
		if it.queue.at(q.entry) >= 0 {
			return true, "somebody stands in the queue twice"
		}
		it.queue.add(q.entry)
		if w.first[q.entry] == 0 {
			w.first[q.entry] = it.token
		}
		if it.by == 0 {
			held := it.token
			if r.numbersAsLast {
				held--
			}
			wrong = w.give(r, q.entry, taker(q.entry), held, q.age, r.term())
		}
		it.token++
		return true, wrong
	case toEnd:
		if !w.own(r, q) || q.writes && !w.inTime(q) || !w.fits(r, q) {
			return false, ""
		}
		return true, w.end(r, q)
	case toPass:
		if it.stamp() != q.seen && !r.passBlind || !r.same(it.queue.entry(q.place), q.entry) {
			return false, ""
		}
		if it.by != 0 && !r.silentPass {
			it.stolen = it.held
		}
		w.takeOut(q.behind, -1)
		for place := q.place; place >= 0; place-- {
			if place == q.place || q.robs && !r.leaveAhead || r.robsFree {
				w.takeOut(place, q.entry)
			}
		}
		wrong = w.give(r, q.entry, taker(q.entry), it.token, q.age, r.term())
		it.token++
		return true, wrong
	case toLeave:
		if !r.same(it.queue.entry(q.place), q.entry) && !r.leaveAny || q.place >= it.queue.len() || it.by == taker(q.entry) {
			return false, ""
		}
		if e := it.queue.entry(q.place); e >= 0 {
			if w.waits(e) && e != q.entry && !r.alike {
				wrong = "somebody is taken out of the queue by another who leaves"
			}
			w.first[e] = 0 // also where it was another's, which is alike: that one has lost its place
		}
		if it.queue[q.place] = vacant; r.leaveMoves {
			it.queue.remove(q.place)
		}
		return true, wrong
	case toClaim:
		if r.closed {
			if !w.own(r, q) && !r.settleBlind {
				return false, ""
			}
			it.by, it.age, it.term, it.beat = taker(q.entry), q.age, forever, 0
			return true, ""
		}
		if !w.own(r, q) || it.beat != 0 {
			return false, ""
		}
		it.age, it.term = q.age, fullLease
		if !r.silentClaim {
			it.beat = 1
		}
		return true, ""
	}
	return false, ""
}

// end applies the write that ends a hold.
func (w *queueWorld) end(r *queueRules, q *request) (wrong string) {
	it := &w.item
	switch {
	case !q.writes:
	case w.applied[q.entry]:
		wrong = "a change is applied twice"
	case w.refused[q.entry]:
		wrong = "a change is applied after its verdict said that it never would be"
	case q.base != it.version:
		wrong = "a change is lost: this one is based on an older read"
	}
	if q.writes {
		w.applied[q.entry] = true
		it.version++
	}
	w.grave = stamp{} // its own write, which came late
	last, to := it.queue.len()-1, int8(-1)
	if q.to >= 0 {
		last, to = q.place, it.queue.entry(q.place)
		if to < 0 {
			return "the lock is handed to somebody who is not in the queue"
		}
	}
	// Without a next one, the whole list goes.
	if q.own > last {
		w.takeOut(q.own, -1)
	}
	for place := last; place >= 0; place-- {
		if e := it.queue.entry(place); e != to && w.waits(e) && e != q.entry {
			wrong = "somebody who waits is taken out of the queue by the end of a hold"
		}
		w.takeOut(place, to)
	}
	if q.to < 0 {
		w.free()
		return wrong
	}
	held := q.token + 1
	if r.ticketToken {
		held = w.first[to]
	}
	bad := w.give(r, to, handed(to), held, q.age, graceTime)
	it.token++
	if wrong == "" {
		wrong = bad
	}
	return wrong
}

// takeOut takes a place out of the queue. Whose it was is served, or has lost it.
func (w *queueWorld) takeOut(place, served int8) {
	if place >= 0 && place < w.item.queue.len() {
		if e := w.item.queue.entry(place); e >= 0 && e != served {
			w.first[e] = 0
		}
		w.item.queue.remove(place)
	}
}

// waits reports whether somebody lives and stands in line who has made an entry.
func (w *queueWorld) waits(e int8) bool {
	return e >= 0 && w.who[e/draws].entry == e && w.who[e/draws].live() && w.who[e/draws].inLine()
}

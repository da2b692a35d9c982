package ticket

import (
	"fmt"
	"slices"
	"time"
)

// The model walks through every order of events that the protocol allows to
// three clients, within bounds: each request answered, its answer lost,
// delivered late, twice or never; clients that pause or die; entries that run
// out and are passed over; an item that is removed by its TTL. A mutant is the
// model with one rule left out: the search must find a broken promise in each.
//
// Time is counted in half leases. A client acts on what it believes while its
// deadline is ahead; others may pass an entry over from its end on.

const (
	clients  = 3
	halves   = 2 // a lease
	perHalf  = 16
	noTicket = 0
)

type phase int8

const (
	fresh phase = iota
	joining
	drawn // mutant only: has a number, and no entry yet
	waiting
	holding
	leaving
	gone
)

// member is a client of the model; all fields are small, the state is a key.
type member struct {
	phase    phase
	ticket   int8
	deadline int8
	sent     int8 // of the request to join
	saw      bool // an answer showed its entry first in line
	until    int8 // of the renewal without an answer; 0: none
	doubt    bool // a removal had no answer
	passed   bool // others took its entry away
	seen     snapshot
	alone    bool // it asks by TryLock: it goes in at once or not at all
	redrawn  bool // it has drawn a second time
	newcomer int8 // 1 + whom its removal lets enter; 0: nobody, or not yet known
	carried  bool // another's removal lets it enter, which has no answer yet

	evicted bool // its ticket was broken

	lateJoin     int8 // 1 + when the copy under way was sent
	lateRenew    int8
	lateRemove   int8
	lateNewcomer int8 // 1 + who enters with that, if anybody
	latePass     snapshot
}

// breaking is an operator who breaks one ticket.
type breaking struct {
	phase       int8 // 0: not begun; 1: sending; 2: over
	of          int8 // whose entry
	w, b        int8 // as it was seen
	doubt, done bool // an attempt had no answer; the ticket was broken
	lateB       int8 // a late copy is under way, with this end; 0: none
}

// snapshot are the entries to pass over, as they were seen.
type snapshot struct{ w, b [clients]int8 }

// world is a state: the item, and the clients.
type world struct {
	now, late     int8 // late: how many more copies may be on their way
	exists        bool
	next, n, left int8
	w, b          [clients]int8 // the entries; an id stands for each client
	ttl           int8          // the item may be removed after it
	served        int8          // greatest ticket that was served
	tampered      bool          // somebody has set n to nothing by hand
	broken        [clients]int8 // evidence: the tickets that were broken, each where its entry was
	breaking      breaking
	who           [clients]member
}

// rules of the model; the zero value is the protocol.
type rules struct {
	members int
	end     int8 // of time
	late    int8 // copies that are delivered late or twice

	// More that is walked through: clients that ask by TryLock, a hand that sets
	// the count to nothing, and clients that wait by Lock, which come back when
	// they were away for longer than their lease.
	tries, tampers, comesBack bool

	breaks bool // somebody breaks one ticket

	carries bool // whoever leaves lets another enter by the same request

	blindCarry, hopeful bool

	noEvidence, blindBreak bool

	trustCount, noAsk, blindReturn                                                                                               bool
	twoSteps, rejoin, blindLeave, blindPass, blindRenew, keepN, noRemoval, noDeadline, fromAnswer, zeroFloor, anyDoubt, notFirst bool
}

// deed names a step; the text is made only for a trace.
type deed struct {
	who  int
	what string
	fate string
	done bool // the service applied it
}

func (d deed) String() string {
	if d.fate == "" {
		return fmt.Sprintf("%d %s", d.who, d.what)
	}
	return fmt.Sprintf("%d %s (applied: %v), %s", d.who, d.what, d.done, d.fate)
}

func (d deed) with(fate string, applied bool) deed {
	d.fate, d.done = fate, applied
	return d
}

// ids are those of the entries.
var ids = [clients]string{"0", "1", "2"}

type step func(what deed, to world, wrong string)

// line is what an image of the item shows, for the library's own code.
func (w *world) line() (l line) {
	for i, number := range w.w {
		if number != noTicket {
			l.entries = append(l.entries, entry{id: ids[i], number: int64(number)})
		}
	}
	slices.SortFunc(l.entries, func(a, b entry) int { return int(a.number - b.number) })
	for _, number := range w.broken {
		if number != noTicket {
			if l.broken == nil {
				l.broken = map[int64]time.Time{}
			}
			l.broken[int64(number)] = time.Time{}
		}
	}
	l.next, l.count, l.left = int64(w.next), int64(w.n), int64(w.left)
	return l
}

func (w *world) ahead(i int) (ahead []int, present bool) {
	entries, present := w.line().before(ids[i], int64(w.who[i].ticket))
	for _, e := range entries {
		ahead = append(ahead, int(e.id[0]-'0'))
	}
	return ahead, present
}

func (w *world) believes(r *rules, i int) bool {
	// Whose ticket was broken is told so by its next renewal: until then the tokens tell.
	return w.who[i].phase == holding && !w.who[i].evicted && (w.now < w.who[i].deadline || r.noDeadline)
}

// wrong checks what must hold in every state.
func (w *world) wrong(r *rules) string {
	var entries, holders int8
	for i := range clients {
		if w.w[i] != noTicket {
			entries++
		} else if w.b[i] != 0 {
			return "an end without an entry"
		}
		if w.b[i] > w.now+halves {
			return "an entry blocks for longer than a lease"
		}
		if w.believes(r, i) {
			holders++
		}
	}
	switch {
	case holders > 1:
		return "two hold at once"
	case w.exists && w.n != entries && !w.tampered:
		return "n is not the number of entries"
	}
	return ""
}

// served checks what must hold when a client goes in.
func (w *world) serve(i int) string {
	m := &w.who[i]
	if m.evicted {
		return "" // it does not know yet, and has the smaller number
	}
	if m.ticket <= w.served {
		return "the token did not grow"
	}
	w.served = m.ticket
	for j := range clients {
		o := &w.who[j]
		if (o.phase == waiting || o.phase == drawn) && !o.evicted && o.ticket < m.ticket && w.now < o.deadline {
			return "served before one who is alive and came earlier"
		}
	}
	return ""
}

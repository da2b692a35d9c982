package ticket

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
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

	lateJoin   int8 // 1 + when the copy under way was sent
	lateRenew  int8
	lateRemove int8
	latePass   snapshot
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
	who           [clients]member
}

// rules of the model; the zero value is the protocol.
type rules struct {
	members int
	end     int8 // of time
	late    int8 // copies that are delivered late or twice

	twoSteps, rejoin, blindLeave, blindPass, blindRenew, keepN, noRemoval, noDeadline, fromAnswer, zeroFloor, anyDoubt, notFirst bool
}

// tooMany states are not a model that anybody can run.
const tooMany = 20_000_000

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
	l.left = int64(w.left)
	return l
}

func (w *world) ahead(i int) (ahead []int, present bool) {
	entries, present := w.line().before(ids[i], int64(w.who[i].ticket))
	for _, e := range entries {
		ahead = append(ahead, int(e.id[0]-'0'))
	}
	return ahead, present
}

// The requests, as the service applies them.

func (w *world) draw(r *rules, sent int8) int8 {
	if !w.exists {
		w.exists = true
		if w.next = sent*perHalf + 1; r.zeroFloor {
			w.next = 0
		}
	}
	w.next++
	return w.next
}

func (w *world) join(r *rules, i int, sent int8) bool {
	if w.w[i] != noTicket && !r.rejoin {
		return false
	}
	w.w[i], w.b[i] = w.draw(r, sent), sent+halves
	w.n, w.ttl = w.n+1, max(w.ttl, sent+halves)
	return true
}

func (w *world) renew(r *rules, i int, ticket, until int8) bool {
	if r.blindRenew && w.exists {
		w.b[i] = max(w.b[i], until)
		return true
	}
	if w.w[i] != ticket || w.b[i] >= until {
		return false
	}
	w.b[i], w.ttl = until, max(w.ttl, until)
	return true
}

func (w *world) remove(r *rules, i int, ticket int8) bool {
	if w.w[i] != ticket && (!r.blindLeave || !w.exists) {
		return false
	}
	w.w[i], w.b[i], w.left = noTicket, 0, ticket
	w.n--
	return true
}

func (w *world) pass(r *rules, s snapshot) bool {
	for i, number := range s.w {
		if number != noTicket && (w.w[i] != number || w.b[i] != s.b[i]) && (!r.blindPass || w.w[i] == noTicket) {
			return false
		}
	}
	for i, number := range s.w {
		if number == noTicket {
			continue
		}
		w.who[i].passed = w.who[i].passed || w.w[i] == w.who[i].ticket
		w.w[i], w.b[i] = noTicket, 0
		if !r.keepN {
			w.n--
		}
	}
	return true
}

func (w *world) believes(r *rules, i int) bool {
	return w.who[i].phase == holding && (w.now < w.who[i].deadline || r.noDeadline)
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
	case w.exists && w.n != entries:
		return "n is not the number of entries"
	}
	return ""
}

// served checks what must hold when a client goes in.
func (w *world) serve(i int) string {
	m := &w.who[i]
	if m.ticket <= w.served {
		return "the token did not grow"
	}
	w.served = m.ticket
	for j := range clients {
		o := &w.who[j]
		if (o.phase == waiting || o.phase == drawn) && o.ticket < m.ticket && w.now < o.deadline {
			return "served before one who is alive and came earlier"
		}
	}
	return ""
}

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
	// The TTL is a day past every end: no request to join is that old.
	old := slices.ContainsFunc(w.who[:], func(m member) bool { return m.lateJoin != 0 || m.phase == joining })
	if w.exists && w.now > w.ttl && !old {
		to := w
		to.exists, to.next, to.n, to.left, to.ttl, to.w, to.b = false, 0, 0, 0, 0, [clients]int8{}, [clients]int8{}
		out(deed{what: "sees the item removed by its TTL"}, to, "")
	}
	for i := range r.members {
		if i > 0 && w.who[i-1].phase == fresh {
			break // clients are alike: they begin in order
		}
		r.copies(w, i, out)
		r.act(w, i, out)
	}
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
	deliver("has a late copy arrive: leave", m.lateRemove != 0, func(to *world) { to.who[i].lateRemove = 0; to.remove(r, i, m.lateRemove) })
	deliver("has a late copy arrive: pass", m.latePass != snapshot{}, func(to *world) { to.who[i].latePass = snapshot{}; to.pass(r, m.latePass) })
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
	case joining:
		r.join(w, i, out)
	case drawn:
		to := w
		to.w[i], to.b[i], to.n = m.ticket, m.sent+halves, to.n+1
		to.who[i].phase = waiting
		out(deed{who: i, what: "enters"}, to, "")
	case waiting, holding:
		r.keep(w, i, out)
		r.leave(w, i, out)
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
			m.saw = present && len(ahead) == 0
			return ""
		})
}

// keep renews, with the bytes of the request that had no answer, if any.
func (r *rules) keep(w world, i int, out step) {
	m := w.who[i]
	if m.until == 0 {
		if w.now >= m.deadline || w.now == m.deadline-halves {
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
			case !applied && (to.w[i] != m.ticket || to.b[i] != until):
				m.phase = gone
			case r.fromAnswer:
				m.deadline = to.now + halves
			default:
				m.deadline = until
			}
			return ""
		})
}

// leave takes the entry away; a client that holds believes so no longer.
func (r *rules) leave(w world, i int, out step) {
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
		m.phase = gone
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

// forget drops what nobody will look at any more, so that states which differ
// in nothing else are one.
func (w *world) forget() {
	for i := range w.who {
		m := &w.who[i]
		if m.phase != joining && m.phase != drawn {
			m.sent = 0
		}
		switch m.phase {
		case leaving:
			m.until, m.saw = 0, false
		case gone:
			// The ticket is still what late copies name.
			m.until, m.saw, m.deadline, m.doubt, m.passed, m.seen = 0, false, 0, false, false, snapshot{}
			if m.lateRenew == 0 {
				m.ticket = noTicket
			}
		}
	}
}

// search visits all states, breadth first.
func (r *rules) search() (states int, wrong string, trace []string) {
	type node struct {
		w      world
		before int
		what   deed
	}
	start := world{late: r.late}
	nodes := []node{{w: start, before: -1}}
	known := map[world]struct{}{start: {}}
	for at := 0; at < len(nodes) && wrong == "" && at < tooMany; at++ {
		r.next(nodes[at].w, func(what deed, to world, bad string) {
			if wrong != "" {
				return
			}
			to.forget()
			_, old := known[to]
			if bad == "" && old {
				return
			}
			known[to] = struct{}{}
			nodes = append(nodes, node{to, at, what})
			if wrong = bad; bad != "" {
				for n := len(nodes) - 1; n > 0; n = nodes[n].before {
					trace = append(trace, nodes[n].what.String())
				}
				slices.Reverse(trace)
			}
		})
	}
	if wrong == "" && len(nodes) >= tooMany {
		wrong = "the search has no end"
	}
	return len(nodes), wrong, trace
}

func TestModelKeepsItsPromises(t *testing.T) {
	t.Parallel()
	bounds := []rules{{members: 3, end: 3}, {members: 2, end: 4, late: 1}}
	if !testing.Short() {
		bounds = append(bounds, rules{members: 3, end: 2, late: 1})
	}
	if os.Getenv("DYNAHOLD_SOAK") == "1" {
		bounds = append(bounds, rules{members: 3, end: 5}, rules{members: 2, end: 4, late: 2}, rules{members: 3, end: 3, late: 1})
	}
	for _, r := range bounds {
		states, wrong, trace := r.search()
		t.Logf("%d clients, %d half leases, %d late copies: %d states", r.members, r.end, r.late, states)
		if wrong != "" {
			t.Errorf("%s, after\n\t%s", wrong, strings.Join(trace, "\n\t"))
		}
		if states < 50_000 {
			t.Errorf("only %d states: the model does not reach what it should check", states)
		}
	}
}

func TestModelFindsWhatAMissingRuleBreaks(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]rules{
		"joining in two steps":                         {twoSteps: true},
		"joining again draws again":                    {rejoin: true},
		"leaving without a look at the ticket":         {blindLeave: true},
		"passing over whatever is there":               {blindPass: true, members: 2},
		"renewing without a look at the ticket":        {blindRenew: true},
		"passing over without counting":                {keepN: true, members: 2},
		"going in before the stale ones are removed":   {noRemoval: true, members: 2},
		"going in without being the first":             {notFirst: true},
		"going in after the own deadline":              {noDeadline: true, members: 2},
		"the deadline counts from the answer":          {fromAnswer: true, members: 2},
		"numbers of a new item begin at zero":          {zeroFloor: true, members: 2},
		"a removal in doubt is believed for all times": {anyDoubt: true, members: 2},
	} {
		r.members, r.end, r.late = cmp.Or(r.members, 3), 4, 1 // two are enough for most
		states, wrong, trace := r.search()
		if wrong == "" {
			t.Errorf("%s: survived %d states", name, states)
			continue
		}
		t.Logf("%s: found within %d states, %d steps: %s", name, states, len(trace), wrong)
		if testing.Verbose() {
			t.Logf("\n\t%s", strings.Join(trace, "\n\t"))
		}
	}
}

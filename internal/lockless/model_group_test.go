package lockless

import (
	"testing"

	"github.com/dynahold/dynahold/internal/beside"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
)

// Groups of messages that one write carries, with the id of each, on an item that others
// change. A message may be in both groups: it was delivered twice. Each request has a copy,
// which comes at any time, or never. What an item remembers is asked of the library's own
// code; a ring has two places.

const (
	groups     = 2
	ringPlaces = 2
)

// groupItem is the item.
type groupItem struct {
	ids    int8 // that it remembers
	writes int8
	ring   [ringPlaces]int8 // the newest write first; 0: one that has no name here
}

// groupTry is a request: it demands the item as it was read.
type groupTry struct {
	id, base    int8
	adds, keeps int8 // what it changes, and which of that the item remembers
}

// groupCall is a group: its messages are delivered as often as their calls are in doubt.
type groupCall struct {
	phase phase
	runs  int8
	try   groupTry
	copy  groupTry
	open  bool // an attempt had no answer
	mine  int8 // which were applied in the present run
}

type groupWorld struct {
	item groupItem
	made [2]int8 // how often each message was applied
	sent int8    // writes that have a name
	who  [groups]groupCall
}

// groupModel is a search: what the groups carry, its bounds, and the rules that a mutant
// breaks.
type groupModel struct {
	carry  [groups]int8
	others int8 // writes of others
	comes  int8
	tells  bool // as under a lock: what proves the write is its verdict, without another look

	anyMade    bool // that one id is remembered proves the whole write
	keepsFirst bool // the write carries one id
	asksOnce   bool // what was read first tells which ids are known, after a refusal, too
	unbound    bool // the write demands nothing

	known map[int8]int8 // of ids that an item remembers, by the library
	after map[[2]int8]int8
	given verdicts
}

// asked is which ids of an item are remembered.
func (m *groupModel) asked(ids int8) (known int8) {
	known, there := m.known[ids]
	for bit := int8(1); !there && bit <= 2; bit <<= 1 {
		if Remembers(onceCore, onceItem{epoch: 1, present: ids}.wire(), onceIDOf(bit)) {
			known |= bit
		}
	}
	m.known[ids] = known
	return known
}

// remembers is what an item remembers after a write that adds ids, one by one.
func (m *groupModel) remembers(ids, adds int8) int8 {
	next, there := m.after[[2]int8{ids, adds}]
	if !there {
		it := onceItem{epoch: 1, present: ids}
		for bit := int8(1); bit <= 2; bit <<= 1 {
			if adds&bit == 0 {
				continue
			}
			d, err := beside.Remember(onceCore, it.wire(), onceIDOf(bit), protocol.OnceID{}, 1, nil)
			if err != nil {
				panic(err)
			}
			it = it.set(d.Set)
		}
		next = it.present
		m.after[[2]int8{ids, adds}] = next
	}
	return next
}

// write applies a request of group i where it fits.
func (w *groupWorld) write(m *groupModel, i int, t groupTry) (applied bool, wrong string) {
	if !m.unbound && w.item.writes != t.base {
		return false, ""
	}
	for n := range w.made {
		if t.adds&(1<<n) != 0 {
			if w.made[n]++; w.made[n] > 1 {
				wrong = "a change is applied twice"
			}
		}
	}
	w.item.ids = m.remembers(w.item.ids, t.keeps)
	w.item.writes++
	w.item.ring = [ringPlaces]int8{t.id, w.item.ring[0]}
	if c := &w.who[i]; c.try.id == t.id {
		c.mine |= t.adds
	}
	return true, wrong
}

func (m *groupModel) next(w groupWorld, out emit[groupWorld]) {
	if m.others > 0 && w.item.writes-w.sent < m.others && w.item.writes < 2*m.others {
		on := w
		on.item.writes++
		on.item.ring = [ringPlaces]int8{0, on.item.ring[0]}
		out("others", "write", on, "")
	}
	for i := range w.who {
		m.call(w, i, out)
	}
}

func (m *groupModel) call(w groupWorld, i int, out emit[groupWorld]) {
	name, c := ids[i+1], &w.who[i]
	if c.copy.id > 0 {
		on := w
		on.who[i].copy = groupTry{}
		applied, wrong := on.write(m, i, c.copy)
		out(name, "a copy comes"+yes(applied), on, wrong)
	}
	switch c.phase {
	case fresh:
		on := w
		on.who[i].open, on.who[i].mine = false, 0
		on.who[i].runs++
		m.look(on, i, "it comes, and reads", out)
	case holding:
		on := w
		on.who[i].phase, on.who[i].copy = ending, c.try
		out(name, "sends its write", on, "")
		m.told(w, i, (&Doubt{open: c.open}).End(), "its callers leave", out)
	case ending:
		m.answer(w, i, out)
	}
}

// look is what a group makes of the item that it sees.
func (m *groupModel) look(w groupWorld, i int, what string, out emit[groupWorld]) {
	c := &w.who[i]
	adds := m.carry[i] &^ m.asked(w.item.ids)
	if m.asksOnce && c.try.id > 0 {
		adds = c.try.adds
	}
	if adds == 0 {
		m.told(w, i, protocol.Committed, what+", and finds all ids", out)
		return
	}
	w.sent++
	c.phase, c.open = holding, false
	c.try = groupTry{id: w.sent, base: w.item.writes, adds: adds, keeps: adds}
	if m.keepsFirst {
		c.try.keeps &= -c.try.keeps
	}
	out(ids[i+1], what, w, "")
}

// answer is what can come of the write that a group waits for.
func (m *groupModel) answer(w groupWorld, i int, out emit[groupWorld]) {
	name, try := ids[i+1], w.who[i].try
	on := w
	on.who[i].phase, on.who[i].open = holding, true
	out(name, "it is lost", on, "")

	on = w
	on.who[i].phase, on.who[i].open = holding, true
	applied, wrong := on.write(m, i, try)
	out(name, "it is delivered"+yes(applied)+", the answer is lost", on, wrong)

	on = w
	if applied, wrong = on.write(m, i, try); applied {
		if wrong != "" {
			out(name, "it is answered", on, wrong)
			return
		}
		m.told(on, i, protocol.Committed, "it is answered", out)
		return
	}
	switch m.judge(w.item, try) {
	case protocol.Committed:
		m.told(w, i, protocol.Committed, "it is refused, by its own work", out)
	case protocol.Lost:
		m.look(w, i, "it is refused, and shows the item", out)
	default:
		switch made := m.made(w.item.ids, try.adds); {
		case made && m.tells:
			m.told(w, i, protocol.Committed, "it is refused, by an item that has its ids", out)
			return
		case made:
			m.look(w, i, "it is refused, by an item that has its ids", out)
			return
		}
		m.told(w, i, protocol.Undecided, "it is refused, out of sight", out)
	}
}

// judge tells from the ring of an item that has refused a write.
func (m *groupModel) judge(it groupItem, try groupTry) protocol.Verdict {
	for _, id := range it.ring {
		if id == try.id {
			return protocol.Committed
		}
	}
	if it.writes-try.base <= ringPlaces {
		return protocol.Lost
	}
	return protocol.Undecided
}

// made is Made of package combine: all of what a write changes is remembered.
func (m *groupModel) made(ids, adds int8) bool {
	known := m.asked(ids) & adds
	return known == adds || m.anyMade && known != 0
}

// told gives the messages of a group their verdict. Those without one come again.
func (m *groupModel) told(w groupWorld, i int, v protocol.Verdict, what string, out emit[groupWorld]) {
	c := &w.who[i]
	m.given[v]++
	wrong := ""
	for n := range w.made {
		switch bit := int8(1) << n; {
		case m.carry[i]&bit == 0:
		case v == protocol.Committed && w.made[n] == 0:
			wrong = "a message is told that it is applied, but it is not"
		case v == protocol.Lost && c.mine&bit != 0:
			wrong = "a message is told that nothing was written, but it is"
		}
	}
	c.phase, c.try, c.mine = done, groupTry{}, 0
	if v == protocol.Undecided && c.runs < m.comes {
		c.phase = fresh
	}
	out(ids[i+1], what, w, wrong)
}

func groupRuns() map[string]groupModel {
	return map[string]groupModel{
		"both carry both":       {carry: [groups]int8{3, 3}, others: 3, comes: 2},
		"one message is shared": {carry: [groups]int8{3, 2}, others: 3, comes: 2},
		"under a lock":          {carry: [groups]int8{3, 2}, others: 3, comes: 2, tells: true},
	}
}

func runGroups(m groupModel) (searched, verdicts) {
	m.known, m.after, m.given = map[int8]int8{}, map[[2]int8]int8{}, verdicts{}
	return search.Actors([]groupWorld{{}}, m.next), m.given
}

func TestModelGroups(t *testing.T) {
	for name, m := range groupRuns() {
		if quick() {
			m.comes, m.others = 1, 2
		}
		f, v := runGroups(m)
		mustHold(t, name, f, v)
	}
}

// TestModelGroupsMutants breaks one rule at a time.
func TestModelGroupsMutants(t *testing.T) {
	for name, mutate := range map[string]func(*groupModel){
		"one id proves the whole write": func(m *groupModel) { m.anyMade, m.tells = true, true },
		"the write carries one id":      func(m *groupModel) { m.keepsFirst = true },
		"ids are asked for once":        func(m *groupModel) { m.asksOnce = true },
		"the write is bound to nothing": func(m *groupModel) { m.unbound = true },
	} {
		for run, m := range groupRuns() {
			mutate(&m)
			if m.anyMade && m.carry[0] == m.carry[1] {
				continue // then all ids are there, or none
			}
			f, _ := runGroups(m)
			f.MustFind(t, name+", "+run)
		}
	}
}

package lockless

import (
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/protocol"
)

// Copies of a transaction: the answer that its sender sees may be that of a copy, which
// has met the request itself, or others; and a copy may come when everything is decided.

// looking is a transaction that has met others, and looks at what it has read.
const looking phase = 100

// meet are the answers that say that others are at the items.
func (m *jointModel) meet(w jointWorld, i int, name string, out emit[jointWorld]) {
	if !m.meets {
		return
	}
	nth := w.who[i].nth
	w.who[i].phase = looking
	out(name, "sends, and is told of others", w, "")
	on := w
	if r := &on.who[i].runs[nth]; r.late < m.copies {
		r.late++
		out(name, "sends, and is told of others, and a copy is late", on, "")
	}
	_, wrong := m.execute(&w, i, nth)
	out(name, "sends, which arrives, and is told of others", w, wrong)
}

// look looks at all that was read, at one moment, and goes on as the library does.
func (m *jointModel) look(w jointWorld, i int, name string, out emit[jointWorld]) {
	a := &w.who[i]
	r, id := &a.runs[a.nth], writeID(runID(i, a.nth))
	var looks []Look
	for k := range m.items {
		if p := m.plans[i][k]; p == checked || p == changed || p == removed {
			looks = append(looks, LookAt(jointCore, Part{Base: r.base[k].image(), Writes: p.writes(), Removes: p == removed}, id, w.items[k].image()))
		}
	}
	judge, next := JudgeLooks, Busy.Next
	if m.looks != nil {
		judge = m.looks
	}
	if m.step != nil {
		next = m.step
	}
	switch next(judge(looks...), a.tries >= m.tries) {
	case Conclude:
		m.conclude(w, i, name+" sees its id", protocol.Committed, out)
	case SendOther:
		m.conclude(w, i, name+" sees that it is not applied", protocol.Lost, out)
		m.other(w, i, name, out)
	case SendSame:
		a.phase = ending
		out(name, "is to send the same again", w, "")
	default:
		m.conclude(w, i, name+" has met others to the end", protocol.Undecided, out)
	}
}

// other starts another run from what was seen.
func (m *jointModel) other(w jointWorld, i int, name string, out emit[jointWorld]) {
	a := &w.who[i]
	if a.nth+1 >= m.runs || a.runs[a.nth].applied && m.step == nil && m.looks == nil {
		return
	}
	a.runs[a.nth].lost = m.step == nil // a mutant promises nothing: that it is applied twice is found all the same
	next := &a.runs[a.nth+1]
	next.base = a.runs[a.nth].base
	for k := range m.items {
		switch p := m.plans[i][k]; {
		case p.held(), p == event, p == untouched, p == required:
		case w.items[k].by != 0:
			a.known &^= 1 << k
		default:
			next.base[k] = w.items[k]
		}
	}
	a.nth, a.tries, a.unsure, a.phase = a.nth+1, 0, false, fresh
	out(name, "has seen what others wrote, and runs again", w, "")
}

// copiedRuns are the searches. Three items, and a copy of each request.
func copiedRuns() map[string]jointRules {
	of := func(r jointRules) jointRules {
		r.runs, r.tries, r.copies, r.meets, r.twice = 2, 2, 1, true, true
		return r
	}
	return map[string]jointRules{
		"three items":      of(jointRules{plans: [][maxItems]part{{changed, checked, changed}}, start: []jointItem{jointLocked, jointLocked, jointLocked}, events: 2}),
		"locked and read":  of(jointRules{plans: [][maxItems]part{{changed, locked, checked}}, start: []jointItem{jointLocked, jointPlain, jointLocked}, events: 2, breaks: true}),
		"deleted and read": of(jointRules{plans: [][maxItems]part{{removed, changed, checked}}, start: []jointItem{jointLocked, jointLocked, jointLocked}, events: 2}),
		"two writers":      of(jointRules{plans: [][maxItems]part{{changed, changed, checked}, {changed, untouched, changed}}, start: []jointItem{jointLocked, jointOld, jointOld}, events: 0}),
		"not read":         of(jointRules{plans: [][maxItems]part{{event, event, event}}, start: []jointItem{jointOld, jointOld, jointOld}, events: 1, keeps: true}).settled(),
	}
}

// settled is a search without late copies: of what is bound to nothing that was read they
// are a limit.
func (r jointRules) settled() jointRules {
	r.copies, r.twice = 0, false
	return r
}

func copiedBounds(r jointRules) jointRules {
	if quick() {
		r.events = min(r.events, 1)
	}
	if soak() {
		r.events++
	}
	return r
}

func TestModelTransactionCopies(t *testing.T) {
	states := 0
	runs := copiedRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		r := copiedBounds(runs[name])
		f, v := runJoint(r)
		mustHold(t, name, f, v)
		states += f.States
	}
	t.Logf("%d states in all", states)
}

// TestModelTransactionCopiesMutants leaves out one rule at a time.
func TestModelTransactionCopiesMutants(t *testing.T) {
	runs := copiedRuns()
	otherwise := func(from Step, evidence protocol.Verdict, to Step) func(*jointRules) {
		return func(r *jointRules) {
			r.step = func(seen protocol.Verdict, last bool) Step {
				if step := Busy.Next(seen, last); step != from || seen != evidence {
					return step
				}
				return to
			}
		}
	}
	for _, m := range []struct {
		name, run string
		mutate    func(*jointRules)
	}{
		{"who meets others begins anew", "three items", otherwise(SendSame, protocol.Undecided, SendOther)},
		{"who meets others begins anew, with locks", "locked and read", otherwise(SendSame, protocol.Undecided, SendOther)},
		{"who meets others begins anew, and has read nothing", "not read", otherwise(SendSame, protocol.Undecided, SendOther)},
		{"who meets others to the end was not applied", "three items", otherwise(FindOut, protocol.Undecided, SendOther)},
		{"an item without the id proves that nothing will be applied", "three items", func(r *jointRules) {
			r.looks = func(looks ...Look) protocol.Verdict {
				for i := range looks {
					looks[i].Moved = true
				}
				return JudgeLooks(looks...)
			}
		}},
		{"an item that has moved proves that nothing was applied", "deleted and read", func(r *jointRules) {
			r.looks = func(looks ...Look) protocol.Verdict {
				for i := range looks {
					looks[i].Without = looks[i].Without || looks[i].Moved
				}
				return JudgeLooks(slices.DeleteFunc(looks, func(l Look) bool { return l.Applied })...)
			}
		}},
		{"the id in an item proves nothing", "three items", func(r *jointRules) {
			r.looks = func(looks ...Look) protocol.Verdict {
				for i, l := range looks {
					looks[i].Applied, looks[i].Without = false, l.Without || l.Applied
				}
				return JudgeLooks(looks...)
			}
		}},
		{"the same under a new token", "not read", func(r *jointRules) { r.forgets = true }},
		{"a lock does not move what was read", "three items", func(r *jointRules) { r.noToken, r.noLock = true, true }},
	} {
		r := copiedBounds(runs[m.run])
		m.mutate(&r)
		f, _ := runJoint(r)
		f.MustFind(t, m.name)
	}
}

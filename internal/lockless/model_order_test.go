package lockless

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/search"
)

// The order in which transactions take locks. Nothing gets lost here: what is
// searched for is a circle of waiting, and a transaction that begins anew for
// ever.

// orderly is one transaction.
type orderly struct {
	order    int8 // nth of its orders of touching
	at       int8 // items that the present run has touched
	held     int8 // items that it has locked, by bits
	known    int8 // items that it will lock before the closure runs again
	retaking bool
	done     bool
	letGo    int8 // how often it has let go of everything
}

type orderWorld struct {
	owner [maxItems]int8 // transaction i is i+1
	who   [maxActors]orderly
}

type orderRules struct {
	takers int
	orders [][]int8 // in which the closures touch items
	single bool     // somebody beside takes and releases one lock at a time

	// Mutants.
	waitsAnyway   bool // for what comes earlier than what it holds
	retakesAsSeen bool // takes what it knows in the order of touching
	forgetsKnown  bool // lets go, and runs again with empty hands
}

func (m *orderRules) next(w orderWorld, out emit[orderWorld]) {
	steps := 0
	count := func(who, what string, to orderWorld, wrong string) { steps++; out(who, what, to, wrong) }
	for i := range m.takers {
		m.step(w, i, "transaction "+ids[i+1], count)
	}
	if m.single {
		for k, owner := range w.owner {
			on := w
			switch owner {
			case 0:
				on.owner[k] = byProgram
				out("others", fmt.Sprintf("lock item %d", k), on, "")
			case byProgram:
				on.owner[k] = 0
				count("others", fmt.Sprintf("release item %d", k), on, "")
			}
		}
	}
	if steps == 0 && slices.ContainsFunc(w.who[:m.takers], func(o orderly) bool { return !o.done }) {
		out("nobody", "can go on", w, "a circle: everybody waits")
	}
}

func (m *orderRules) step(w orderWorld, i int, name string, out emit[orderWorld]) {
	o, order := &w.who[i], m.orders[w.who[i].order]
	switch {
	case o.done:
		return
	case o.retaking:
		m.retake(w, i, name, out)
		return
	case int(o.at) == len(order):
		w.letGo(i)
		o.done = true
		out(name, "commits", w, "")
		return
	}
	k := order[o.at]
	free := w.owner[k] == 0
	switch {
	case o.held&(1<<k) != 0:
		o.at++
		out(name, fmt.Sprintf("touches item %d again", k), w, "")
	case free:
		w.take(i, k)
		o.at++
		out(name, fmt.Sprintf("locks item %d", k), w, "")
	case m.waitsAnyway, MayWait(o.items(), k):
		// It waits.
	default:
		if !m.forgetsKnown {
			o.known = o.held | 1<<k
		}
		w.letGo(i)
		o.at, o.retaking = 0, !m.forgetsKnown
		o.letGo++
		wrong := ""
		if int(o.letGo) > len(order) {
			wrong = "a transaction begins anew again and again"
			o.letGo = 0
		}
		out(name, fmt.Sprintf("finds item %d held, and lets go", k), w, wrong)
	}
}

// retake takes what is known, in the order of items.
func (m *orderRules) retake(w orderWorld, i int, name string, out emit[orderWorld]) {
	o, order := &w.who[i], []int8{0, 1, 2}
	if m.retakesAsSeen {
		order = m.orders[o.order]
	}
	for _, k := range order {
		if o.known&^o.held&(1<<k) == 0 {
			continue
		}
		if w.owner[k] == 0 {
			w.take(i, k)
			out(name, fmt.Sprintf("locks item %d before it runs again", k), w, "")
		}
		return
	}
	o.retaking = false
	out(name, "runs again", w, "")
}

// items are what a transaction holds.
func (o *orderly) items() (held []int8) {
	for k := range int8(maxItems) {
		if o.held&(1<<k) != 0 {
			held = append(held, k)
		}
	}
	return held
}

func (w *orderWorld) take(i int, k int8) {
	w.owner[k] = int8(i + 1)
	w.who[i].held |= 1 << k
}

func (w *orderWorld) letGo(i int) {
	for k := range w.owner {
		if w.owner[k] == int8(i+1) {
			w.owner[k] = 0
		}
	}
	w.who[i].held = 0
}

// allOrders are all ways to touch two or three items.
func allOrders() (all [][]int8) {
	for a := range int8(maxItems) {
		for b := range int8(maxItems) {
			if b != a {
				all = append(all, []int8{a, b}, []int8{a, b, 3 - a - b})
			}
		}
	}
	return all
}

func runOrder(r orderRules) (f searched) {
	r.orders = allOrders()
	if quick() && r.takers == maxActors { // those who touch fewer items are in the way less
		r.orders = slices.DeleteFunc(r.orders, func(o []int8) bool { return len(o) < maxItems })
	}
	var starts []orderWorld
	choose := func(w orderWorld, _ int) []orderWorld { return []orderWorld{w} }
	for i := range r.takers {
		before := choose
		choose = func(w orderWorld, _ int) (all []orderWorld) {
			for _, w := range before(w, 0) {
				for n := range r.orders {
					w.who[i].order = int8(n)
					all = append(all, w)
				}
			}
			return all
		}
	}
	starts = choose(orderWorld{}, 0)
	return search.Actors(starts, r.next)
}

func TestModelOrder(t *testing.T) {
	for name, r := range map[string]orderRules{
		"two":              {takers: 2},
		"three":            {takers: 3},
		"two, and a third": {takers: 2, single: true},
	} {
		f := runOrder(r)
		if f.Wrong != "" {
			t.Errorf("%s: %v", name, f)
		}
		t.Logf("%s: %d states", name, f.States)
	}
}

// TestModelOrderMutants leaves out one rule at a time.
func TestModelOrderMutants(t *testing.T) {
	mutants := map[string]orderRules{
		"waits for what comes earlier":         {takers: 2, waitsAnyway: true},
		"takes again in the order of touching": {takers: 2, retakesAsSeen: true},
		"forgets what it had to let go of":     {takers: 2, forgetsKnown: true},
	}
	for _, name := range slices.Sorted(maps.Keys(mutants)) {
		runOrder(mutants[name]).MustFind(t, name)
	}
}

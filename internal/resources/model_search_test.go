package resources_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

// The model check walks through every order of events that the protocol of
// jobs and permits allows, within bounds: requests that arrive late, twice or
// never, answers that are lost, handlers that die or sleep past their lease.
// The state of the world is a small comparable value; the service and its
// clients are functions from state to states, to be read next to the protocol
// in doc.go.
//
// A mutant is the same model with one rule left out. The search must find a
// broken promise in each: else it would not find one in the protocol either.

// emit takes one step that is possible: who does what, the state after it, and
// which promise is broken there, if any.
type emit func(who, what string, to world, wrong string)

// searched is what a search found.
type searched struct {
	states int
	wrong  string   // the first promise that was broken; "" if none was
	trace  []string // the shortest way there
}

// tooMany states are not a model that anybody can run.
const tooMany = 20_000_000

// search visits, breadth first, all states that can be reached.
func search(start world, next func(*world, emit)) (found searched) {
	type node struct{ before, nth int32 } // nth step from the state before
	nodes := []node{{-1, 0}}
	queue := []world{start}
	seen := map[world]struct{}{start: {}}
	last, nth := -1, 0
	for at := 0; at < len(queue) && last < 0 && len(nodes) < tooMany; at++ {
		s, n := queue[at], 0
		next(&s, func(_, _ string, to world, wrong string) {
			n++
			if wrong != "" {
				if last < 0 {
					last, nth, found.wrong = at, n, wrong
				}
				return
			}
			if _, ok := seen[to]; !ok {
				seen[to] = struct{}{}
				nodes = append(nodes, node{int32(at), int32(n)})
				queue = append(queue, to)
			}
		})
	}
	if found.states = len(nodes); found.states >= tooMany {
		found.wrong = "the search has no end"
	}
	if last < 0 {
		return found
	}
	// Walk the way again, for the names of its steps.
	way := []int32{int32(nth)}
	for ; nodes[last].before >= 0; last = int(nodes[last].before) {
		way = append(way, nodes[last].nth)
	}
	s := start
	for _, nth := range slices.Backward(way) {
		n, from := int32(0), s
		next(&from, func(who, what string, to world, _ string) {
			if n++; n == nth {
				s = to
				found.trace = append(found.trace, fmt.Sprintf("tick %d, %s: %s", from.now, who, what))
			}
		})
	}
	return found
}

func (f searched) String() string {
	return fmt.Sprintf("%s, after\n\t%s", f.wrong, strings.Join(f.trace, "\n\t"))
}

// soak reports whether the wide bounds are asked for, quick whether the narrow
// ones are.
func soak() bool  { return rig.Soaking() }
func quick() bool { return rig.Quick() }

// mustHold fails the test if a search found something wrong, or if the model
// never came to what it should check.
func mustHold(t *testing.T, name string, f searched, s sights, want ...sight) {
	t.Helper()
	if f.wrong != "" {
		t.Errorf("%s: %v", name, f)
	}
	for _, w := range want {
		if s[w] == 0 {
			t.Errorf("%s: never seen: %s", name, sightNames[w])
		}
	}
	t.Logf("%s: %d states; %v", name, f.states, s)
}

// mustFind fails the test if a search did not find the promise that breaks.
func mustFind(t *testing.T, name, promise string, f searched) {
	t.Helper()
	if f.wrong == "" {
		t.Errorf("%s: survived %d states", name, f.states)
		return
	}
	if !strings.Contains(f.wrong, promise) {
		t.Errorf("%s: %v; want %q", name, f, promise)
	}
	t.Logf("%s: found within %d states, %d steps: %s", name, f.states, len(f.trace), f.wrong)
	if testing.Verbose() {
		t.Logf("%v", f)
	}
}

package resources_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	states "github.com/dynahold/dynahold/internal/search"
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

// search visits, breadth first, all states that can be reached.
func search(start world, next func(*world, emit)) searched {
	type name struct{ who, what string }
	f := states.All([]world{start}, func(s *world, step states.Emit[world, name]) {
		next(s, func(who, what string, to world, wrong string) { step(name{who, what}, to, wrong) })
	})
	return searched{f.States, f.Wrong, f.Trace(func(s states.Step[world, name]) string {
		return fmt.Sprintf("tick %d, %s: %s", s.From.now, s.Name.who, s.Name.what)
	})}
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

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	states "github.com/dynahold/dynahold/internal/search"
)

// The model checks walk through every order of events that a protocol allows,
// within bounds: requests that arrive late, twice or never, answers that are
// lost, leases that run out, operators that break holds. The state of the
// world is a small comparable value; the service and the clients of the model
// are functions from state to states, to be read next to the protocol in
// doc.go of the packages. What is judged is judged by the library's own code:
// Lock.Commit, Lock.Remove and RingVerdict are called, never imitated.
//
// A mutant is the same model with one rule left out. The search must find a
// wrong outcome in each: else it would not find one in the protocol either.

// emit takes one step that is possible: who does what, the state after it, and
// what is wrong there, if anything is.
type emit[S comparable] func(who, what string, to S, wrong string)

// searched is what a search found.
type searched struct {
	states int
	wrong  string   // the first promise that was broken; "" if none was
	trace  []string // the shortest way there
}

// search visits, breadth first, all states that can be reached.
func search[S comparable](starts []S, next func(S, emit[S])) searched {
	type name struct{ who, what string }
	f := states.All(starts, func(s *S, step states.Emit[S, name]) {
		next(*s, func(who, what string, to S, wrong string) { step(name{who, what}, to, wrong) })
	})
	return searched{f.States, f.Wrong, f.Trace(func(s states.Step[S, name]) string { return s.Name.who + ": " + s.Name.what })}
}

func (f searched) String() string {
	return fmt.Sprintf("%s, after\n\t%s", f.wrong, strings.Join(f.trace, "\n\t"))
}

// verdicts counts the steps that gave a verdict, by verdict.
type verdicts map[Verdict]int

func (v verdicts) String() string {
	names := map[Verdict]string{Undecided: "undecided", Committed: "committed", Expired: "expired", Lost: "lost"}
	var out []string
	for _, verdict := range slices.Sorted(maps.Keys(v)) {
		out = append(out, fmt.Sprintf("%s %d", names[verdict], v[verdict]))
	}
	return strings.Join(out, ", ")
}

// soak reports whether the wide bounds are asked for, quick whether the narrow
// ones are.
func soak() bool  { return rig.Soaking() }
func quick() bool { return rig.Quick() }

// mustHold fails the test if a search found something wrong.
func mustHold(t *testing.T, name string, f searched, v verdicts) {
	t.Helper()
	if f.wrong != "" {
		t.Errorf("%s: %v", name, f)
	}
	if v[Committed] == 0 || v[Undecided] == 0 {
		t.Errorf("%s: some verdicts never occurred (%v): the model does not reach what it should check", name, v)
	}
	t.Logf("%s: %d states; verdicts given: %v", name, f.states, v)
}

// mustFind fails the test if a search found nothing wrong.
func mustFind(t *testing.T, name string, f searched) {
	t.Helper()
	if f.wrong == "" {
		t.Errorf("%s: survived %d states", name, f.states)
		return
	}
	t.Logf("%s: found within %d states, %d steps: %s", name, f.states, len(f.trace), f.wrong)
	if testing.Verbose() {
		t.Logf("%v", f)
	}
}

package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
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

// tooMany states are not a model that anybody can run.
const tooMany = 30_000_000

// search visits, breadth first, all states that can be reached.
func search[S comparable](starts []S, next func(S, emit[S])) (found searched) {
	type node struct{ before, nth int32 } // nth step from the state before
	var nodes []node
	var queue []S
	seen := make(map[S]struct{})
	add := func(s S, before, nth int) {
		if _, ok := seen[s]; !ok {
			seen[s] = struct{}{}
			nodes = append(nodes, node{int32(before), int32(nth)})
			queue = append(queue, s)
		}
	}
	for n, s := range starts {
		add(s, -1, n)
	}
	last, nth := -1, 0
	for at := 0; len(queue) > 0 && last < 0 && at < tooMany; at++ {
		s, n := queue[0], 0
		queue = queue[1:]
		next(s, func(_, _ string, to S, wrong string) {
			if n++; wrong == "" {
				add(to, at, n)
			} else if last < 0 {
				last, nth, found.wrong = at, n, wrong
			}
		})
	}
	found.states = len(nodes)
	if found.states >= tooMany {
		found.wrong = "the search has no end"
	}
	if last < 0 {
		return found
	}
	// Walk the way again, for the names of its steps.
	var way []int32
	for way = []int32{int32(nth)}; nodes[last].before >= 0; last = int(nodes[last].before) {
		way = append(way, nodes[last].nth)
	}
	s := starts[nodes[last].nth]
	for _, nth := range slices.Backward(way) {
		n, from := int32(0), s
		next(from, func(who, what string, to S, _ string) {
			if n++; n == nth {
				s = to
				found.trace = append(found.trace, who+": "+what)
			}
		})
	}
	return found
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

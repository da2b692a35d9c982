package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/search"
)

// The model checks walk through every order of events that a protocol allows,
// within bounds: requests that arrive late, twice or never, answers that are
// lost, leases that run out, operators that break holds. The state of the
// world is a small comparable value; the service and the clients of the model
// are functions from state to states, to be read next to the protocol in
// doc.go of the packages. What is judged is judged by the library's own code:
// JudgeCommit, JudgeDelete and RingVerdict are called, never imitated.

// emit takes one step that is possible; searched is what a search found.
type (
	emit[S comparable] = search.Tell[S]
	searched           = search.Result
)

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
	if f.Wrong != "" {
		t.Errorf("%s: %v", name, f)
	}
	if v[Committed] == 0 || v[Undecided] == 0 {
		t.Errorf("%s: some verdicts never occurred (%v): the model does not reach what it should check", name, v)
	}
	t.Logf("%s: %d states; verdicts given: %v", name, f.States, v)
}

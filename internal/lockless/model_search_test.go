package lockless

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/search"
)

// The models are as those of package protocol: model_search_test.go there.

// emit takes one step that is possible; searched is what a search found.
type (
	emit[S comparable] = search.Tell[S]
	searched           = search.Result
)

// verdicts counts the steps that gave a verdict, by verdict.
type verdicts map[protocol.Verdict]int

func (v verdicts) String() string {
	names := map[protocol.Verdict]string{protocol.Undecided: "undecided", protocol.Committed: "committed", protocol.Expired: "expired", protocol.Lost: "lost"}
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
	if v[protocol.Committed] == 0 || v[protocol.Undecided] == 0 {
		t.Errorf("%s: some verdicts never occurred (%v): the model does not reach what it should check", name, v)
	}
	t.Logf("%s: %d states; verdicts given: %v", name, f.States, v)
}

// phase is where a call is.
type phase int8

const (
	fresh phase = iota
	holding
	ending // the write that ends it is sent
	done
)

// ids name who acts.
var ids = [...]string{"", "A", "B", "C", "hand"}

func yes(applied bool) string {
	if applied {
		return " (applied)"
	}
	return " (refused)"
}

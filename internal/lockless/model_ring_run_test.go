package lockless

import (
	"bytes"
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
	"github.com/dynahold/dynahold/internal/stored"
)

var (
	missing = []ringItem{{}}
	written = []ringItem{{exists: true, version: 1, ring: ids8{40}, last: 40}}
	adopted = []ringItem{{exists: true, last: 40}} // neither version nor ring
)

// ringRuns are the searches of the protocol as it is, each wide in one way.
func ringRuns() map[string]ringRules {
	return map[string]ringRules{
		"three writers": {writers: 3, edits: 1, tries: 2, copies: 1, events: 1, start: slices.Concat(written, adopted)},
		"two writers":   {writers: 2, edits: 2, tries: 2, copies: 1, events: 2, removes: true, start: slices.Concat(written, adopted)},
		"locks":         {writers: 2, edits: 2, tries: 2, copies: 1, events: 1, removes: true, start: slices.Concat(written, adopted), locks: true},
		"creators":      {writers: 2, edits: 2, tries: 2, copies: 1, events: 2, removes: true, creates: true, start: missing},
		"one writer":    {writers: 1, edits: 2, tries: 3, copies: 2, events: 4, removes: true, creates: true, start: slices.Concat(missing, written, adopted)},
	}
}

// bounds widens a search for a soak and narrows it for a short run.
func (r ringRules) bounds() ringRules {
	switch {
	case soak() && r.writers == 3:
		r.events, r.removes = 2, true
	case soak():
		r.events++
	case quick():
		r.writers = min(r.writers, 2)
		r.events = min(r.events, 1)
		if r.locks { // nine tenths of all states
			r.edits = 1
		}
	}
	return r
}

func runRing(r ringRules) (searched, *ringModel) {
	m := &ringModel{ringRules: r, given: verdicts{}, testified: verdicts{}}
	return search.Actors(m.starts(), m.next), m
}

func TestModelRing(t *testing.T) {
	states := 0
	runs := ringRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		f, m := runRing(runs[name].bounds())
		mustHold(t, name, f, m.given)
		states += f.States
		for _, v := range []protocol.Verdict{protocol.Committed, protocol.Lost} {
			if m.testified[v] == 0 {
				t.Errorf("%s: no process has testified %v", name, v)
			}
		}
	}
	t.Logf("%d states in all", states)
}

// TestModelRingMutants leaves out one rule at a time.
func TestModelRingMutants(t *testing.T) {
	runs := ringRuns()
	for _, m := range []struct {
		name, run string
		mutate    func(*ringRules)
	}{
		{"no condition", "three writers", func(r *ringRules) { r.unconditional = true }},
		{"condition on the version alone", "two writers", func(r *ringRules) { r.noRing = true }},
		{"condition on the ring alone, which a blind write keeps", "three writers", func(r *ringRules) { r.noVersion, r.keepRing = true, true }},
		{"ids that are not unique", "three writers", func(r *ringRules) { r.sameID = true }},
		{"every attempt with its own id", "three writers", func(r *ringRules) { r.freshID = true }},
		{"ring out of sight is taken for not applied", "three writers", func(r *ringRules) { r.ringVerdict = instead(protocol.Lost) }},
		{"ring out of sight is taken for applied", "three writers", func(r *ringRules) { r.ringVerdict = instead(protocol.Committed) }},
		{"a lock in the way is taken for a conflict", "locks", func(r *ringRules) { r.rawVerdict = true }},
		{"a refusal without doubt is taken at its word", "two writers", func(r *ringRules) { r.believes = true }},
		{"a lock leaves what it refuses possible", "locks", func(r *ringRules) { r.noMark = true }},
		{"two empty rings are one, though the item is gone", "two writers", func(r *ringRules) { r.ringVerdict = emptyIsLost; r.rawVerdict = true }},
		{"the version alone is the evidence", "three writers", func(r *ringRules) { r.judge = byVersion }},
		{"a refusal is taken at its word", "three writers", func(r *ringRules) { r.judge = atItsWord }},
		{"a witness concludes from absence", "three writers", func(r *ringRules) { r.testimony = instead(protocol.Lost) }},
		{"a witness takes what is as it was read for not applied", "three writers", func(r *ringRules) { r.testimony = protocol.RingVerdict }},
		{"a witness takes any new id for its own", "three writers", func(r *ringRules) { r.testimony = anyID }},
	} {
		r := runs[m.run]
		m.mutate(&r)
		f, _ := runRing(r)
		f.MustFind(t, m.name)
	}
}

// instead judges as RingVerdict, but has an answer also where that has none.
func instead(guess protocol.Verdict) func(id protocol.WriteID, base, now []byte) protocol.Verdict {
	return func(id protocol.WriteID, base, now []byte) protocol.Verdict {
		if v := protocol.RingVerdict(id, base, now); v != protocol.Undecided {
			return v
		}
		return guess
	}
}

func emptyIsLost(id protocol.WriteID, base, now []byte) protocol.Verdict {
	if len(base)+len(now) == 0 {
		return protocol.Lost
	}
	return protocol.RingVerdict(id, base, now)
}

func anyID(_ protocol.WriteID, base, ring []byte) protocol.Verdict {
	if len(ring) > 0 && len(base) > 0 && !bytes.HasPrefix(ring, base[:stored.RingID]) {
		return protocol.Committed
	}
	return protocol.Undecided
}

func byVersion(base, now ringItem, _ protocol.WriteID, _ bool) protocol.Verdict {
	if now.exists && now.version == base.version+1 {
		return protocol.Committed
	}
	return protocol.Lost
}

func atItsWord(ringItem, ringItem, protocol.WriteID, bool) protocol.Verdict { return protocol.Lost }

// TestModelRingGaps is where the protocol does not keep its promise, because it trusts that
// this does not happen: a key that is free after a delete looks as it did before
// the create.
func TestModelRingGaps(t *testing.T) {
	r := ringRuns()["creators"]
	r.resurrect = true
	f, _ := runRing(r)
	f.MustFind(t, "a create that arrives again finds the key free again")
}

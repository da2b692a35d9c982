package protocol

import "testing"

// The gaps are where the protocol does not keep its promise, because it trusts
// that this does not happen. Each is found by the search, as a mutant is.

// TestModelLockGaps: the answer to a request belongs to its first delivery. If
// something on the way repeats a delete after the deadline, and passes on the
// second answer, the item seems to have been taken away.
func TestModelLockGaps(t *testing.T) {
	f, _ := run(lockRules{acquirers: 1, ticks: 2, takes: 1, tries: 2, copies: 1, lives: 1, ops: []op{remove}, start: used, resent: true})
	f.MustFind(t, "a delete is resent on its way, and the second answer arrives")
	f, _ = run(lockRules{acquirers: 2, ticks: 2, takes: 1, tries: 2, takeCopies: 1, copies: 1, lives: 2, ops: []op{commit}, start: born, lateCommit: true, floorOnWire: true})
	f.MustFind(t, "an acquire is delivered twice, the second time in a new life")
	f, _ = run(lockRules{acquirers: 1, ticks: 3, takes: 1, tries: 1, copies: 1, lives: 1, ops: []op{commit}, start: used, extend: true, lateExtend: true})
	f.MustFind(t, "a commit is delivered twice, the second time after a late extend")
}

package ddb

import "testing"

// The gaps are where the protocol does not keep its promise if requests may be
// late without bound. Each is found by the search, as a mutant is, and where a
// rule is known that would close it, the search holds with that rule. When the
// protocol takes the rule over, its gap becomes a mutant.

// settles takes an expired verdict for unknown where an earlier attempt may
// still arrive.
func settles(l Lock, r ruling) Verdict {
	if v := rule(l, r); v != Expired || r.clean {
		return v
	}
	return Undecided
}

func TestModelLockGaps(t *testing.T) {
	revived := lockRules{acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 1, ops: []op{commit}, start: used,
		extend: true, lateExtend: true, onceEach: true}
	again := lockRules{acquirers: 2, ticks: 2, takes: 2, tries: 2, ghosts: 1, copies: 1, lives: 2, ops: []op{commit}, start: born,
		lateCommit: true, floorOnWire: true, onceEach: true, stolenAtFloor: true}
	stub := lockRules{acquirers: 1, ticks: 3, takes: 3, tries: 2, ghosts: 2, copies: 2, lives: 1, ops: []op{commit}, start: unborn, upsert: true,
		floorOnWire: true, onceEach: true, stolenAtFloor: true}
	window := lockRules{acquirers: 2, ticks: 2, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: born,
		lateCommit: true, floorOnWire: true, onceEach: true}
	proxy := lockRules{acquirers: 1, ticks: 2, takes: 1, tries: 2, copies: 1, lives: 1, ops: []op{remove}, start: used, resent: true}
	for _, g := range []struct {
		name  string
		r     lockRules
		close func(*lockRules)
	}{
		{"a late extend revives a hold for a late commit whose verdict was expired", revived, func(r *lockRules) { r.judge = settles }},
		{"a late acquire makes the same hold again in a new life", again, func(r *lockRules) { r.freshID = true }},
		{"a late stub makes the same hold again", stub, func(r *lockRules) { r.freshID = true }},
		{"a new life begins within lifeSpan of the old one", window, func(r *lockRules) { r.stolenAtFloor = true }},
		{"a delete is resent on its way, and the second answer arrives", proxy, nil},
	} {
		f, _ := run(g.r)
		mustFind(t, g.name, f)
		if g.close != nil {
			g.close(&g.r)
			f, v := run(g.r)
			mustHold(t, g.name+", closed", f, v)
		}
	}
}

// TestModelRingGaps: a key that is free after a delete looks as it did before
// the create.
func TestModelRingGaps(t *testing.T) {
	r := ringRuns()["creators"]
	r.resurrect = true
	f, _ := runRing(r)
	mustFind(t, "a create that arrives again finds the key free again", f)
}

package protocol

import (
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/search"
)

var (
	unborn = []lockItem{{stolen: -1}}                                      // no item
	born   = []lockItem{{exists: true, life: 1, stolen: -1}}               // never locked
	used   = []lockItem{{exists: true, life: 1, token: tokensPerLife + 1}} // locked before
	both   = slices.Concat(born, used)
)

// lockRuns are the searches of the protocol as it is, each wide in one way.
func lockRuns() map[string]lockRules {
	return map[string]lockRules{
		"three acquirers": {acquirers: 3, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: used},
		"takeovers":       {acquirers: 2, ticks: 3, takes: 2, tries: 2, takeCopies: 1, copies: 1, lives: 1, ops: []op{commit}, start: used},
		"late commits":    {acquirers: 2, ticks: 2, takes: 1, tries: 2, takeCopies: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: both, lateCommit: true},
		"deletes":         {acquirers: 2, ticks: 2, takes: 1, tries: 2, takeCopies: 1, copies: 1, breaks: 1, lives: 3, ops: []op{commit, remove}, start: both},
		"late deletes":    {acquirers: 2, ticks: 3, takes: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{remove, release}, start: used},
		"remove alone":    {acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove}, start: used, judge: ruleRemove},
		"extensions":      {acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove}, start: used, extend: true},
		"late extends":    {acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{remove}, start: used, extend: true, lateExtend: true, lateCommit: true},
		"wild clocks":     {acquirers: 2, ticks: 2, takes: 1, tries: 2, takeCopies: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit, release}, start: used, wildClocks: true},
		"by hand":         {acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove}, start: both, byHand: true},
		"operators":       {acquirers: 2, ticks: 2, takes: 1, tries: 2, copies: 1, lives: 2, ops: []op{commit}, start: both, operates: true},
		"operators, hand": {acquirers: 2, ticks: 2, takes: 1, tries: 2, copies: 1, lives: 1, ops: []op{release}, start: used, byHand: true, operates: true},
		"upserts":         {acquirers: 2, ticks: 2, takes: 2, tries: 2, copies: 1, lives: 1, ops: []op{commit, release}, start: unborn, upsert: true},
		"lives":           {acquirers: 2, ticks: 2, takes: 2, tries: 2, takeCopies: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: born, lateCommit: true, floorOnWire: true, onceEach: true},
		"late all":        {acquirers: 2, ticks: 3, takes: 1, tries: 2, copies: 1, breaks: 1, lives: 1, ops: []op{commit}, start: used, extend: true, lateExtend: true, onceEach: true},
		"lives of stubs":  {acquirers: 1, ticks: 3, takes: 3, tries: 2, takeCopies: 2, copies: 2, breaks: 1, lives: 2, ops: []op{commit, release}, start: unborn, upsert: true, floorOnWire: true, onceEach: true},
		"copies of stubs": {acquirers: 1, ticks: 3, takes: 3, tries: 2, takeCopies: 2, copies: 2, breaks: 1, lives: 2, ops: []op{commit, release}, start: unborn, upsert: true},
	}
}

// bounds widens a search for a soak and narrows it for a short run.
func (r lockRules) bounds() lockRules {
	switch {
	case soak() && r.acquirers == 3:
		r.takeCopies, r.lives = 1, 1
	case soak() && r.takeCopies == 0:
		r.takes, r.breaks = max(r.takes, 2), 2
	case soak():
		r.tries, r.breaks = 3, 2
	case quick():
		r.ticks, r.lives, r.takeCopies, r.start = 2, min(r.lives, 2), 0, r.start[len(r.start)-1:]
		r.acquirers, r.takes = min(r.acquirers, 2), 1
	}
	return r
}

func run(r lockRules) (searched, verdicts) {
	m := &lockModel{lockRules: r, given: verdicts{}}
	return search.Actors(m.starts(), m.next), m.given
}

func TestModelLock(t *testing.T) {
	states := 0
	runs := lockRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		f, v := run(runs[name].bounds())
		mustHold(t, name, f, v)
		states += f.States
	}
	t.Logf("%d states in all", states)
}

// TestModelLockMutants leaves out one rule at a time.
func TestModelLockMutants(t *testing.T) {
	runs := lockRuns()
	for _, m := range []struct {
		name, run string
		mutate    func(*lockRules)
	}{
		{"Own without lockHeld", "takeovers", func(r *lockRules) { r.ownWithoutHeld = true }},
		{"Own without lockedBy", "by hand", func(r *lockRules) { r.ownWithoutID = true }},
		{"commit without Own", "three acquirers", func(r *lockRules) { r.noOwn = true }},
		{"late commit without Own", "late commits", func(r *lockRules) { r.noOwn = true }},
		{"takeover does not write lockStolen", "takeovers", func(r *lockRules) { r.silentTakeover = true }},
		{"break does not write lockStolen", "takeovers", func(r *lockRules) { r.silentBreak = true }},
		{"break does not write lockStolen, deletes", "late deletes", func(r *lockRules) { r.silentBreak = true }},
		{"every attempt of a commit with its own :now", "three acquirers", func(r *lockRules) { r.freshNow, r.judge = true, hasty }},
		{"tokens start again in a new life", "deletes", func(r *lockRules) { r.resetToken = true }},
		{"an extension may move lockTime back", "late extends", func(r *lockRules) { r.blindExtend = true }},
		{"writers without the lock do not look at it", "three acquirers", func(r *lockRules) { r.writerIgnoresLock = true }},
		{"lockStolen begins at 0", "lives", func(r *lockRules) { r.stolenAtZero = true }},
		{"lockStolen begins at 0, no test of another life", "late commits", func(r *lockRules) { r.stolenAtZero, r.judge = true, oneLife }},
		{"attempts of an acquire share an id", "lives", func(r *lockRules) { r.oneID, r.breaks = true, 0 }},
		{"attempts of a stub share an id", "lives of stubs", func(r *lockRules) { r.oneID = true }},
		{"an own hold is expired although an attempt may come", "late all", func(r *lockRules) { r.judge = hasty }},
		{"verdict without the holder's deadline", "late deletes", func(r *lockRules) { r.judge = trustsAbsence }},
		{"verdict takes every refusal for clean", "deletes", func(r *lockRules) { r.judge = forgetsDoubt }},
		{"verdict takes a refusal at its word", "three acquirers", func(r *lockRules) { r.judge = naive }},
		{"verdict takes unknown for committed", "three acquirers", func(r *lockRules) { r.judge = hopeful }},
		{"verdict ignores a later theft", "takeovers", func(r *lockRules) { r.judge = latestOnly }},
		{"break: only lockStolen is evidence", "operators, hand", func(r *lockRules) { r.judgeBreak = onlyStolen }},
		{"break: a row that is gone was not broken", "operators", func(r *lockRules) { r.judgeBreak = onlyStolen }},
		{"break: whoever holds nothing was broken", "operators, hand", func(r *lockRules) { r.judgeBreak = trustsFreedom }},
		{"break: the token under a hold by hand is its own", "operators, hand", func(r *lockRules) { r.judgeBreak = trustsLeftToken }},
		{"break: a hold by hand does not come back", "operators, hand", func(r *lockRules) { r.judgeBreak = trustsAnEnd }},
		{"verdict ignores lockHeld under another lockedBy", "by hand", func(r *lockRules) { r.judge = blindToHand }},
	} {
		r := runs[m.run]
		m.mutate(&r)
		f, _ := run(r)
		f.MustFind(t, m.name)
	}
}

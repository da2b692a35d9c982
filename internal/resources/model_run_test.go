package resources_test

import (
	"maps"
	"slices"
	"sync/atomic"
	"testing"
)

// modelRun is a search of the protocol, and what it should come to.
type modelRun struct {
	rules
	want []sight
}

// modelRuns are the searches of the protocol, each wide in one way.
func modelRuns() map[string]modelRun {
	ends := []sight{sawDone, sawFail, sawReturn, sawLost, sawUnknown, sawTakeover, sawFound, sawLateEnd}
	uses := []sight{sawPermit, sawRelease, sawBesides, sawLost, sawUnknown, sawSweep, sawFound, sawBusy}
	handed := []sight{sawPassed, sawNotPassed, sawLeft}
	return map[string]modelRun{
		"jobs":                        {rules{jobs: 2, hands: 2, limit: 1, ticks: 2, lease: 1, tokens: 2, late: 1, fails: true}, slices.Concat(ends, []sight{sawBusy})},
		"one job":                     {rules{jobs: 1, hands: 2, limit: 1, ticks: 3, lease: 1, tokens: 3, late: 1, fails: true}, slices.Concat(ends, []sight{sawBury})},
		"three handlers":              {rules{jobs: 1, hands: 3, limit: 1, ticks: 3, lease: 1, tokens: 3, fails: true}, slices.Concat(ends, []sight{sawBury})},
		"limit of two":                {rules{jobs: 2, hands: 2, limit: 2, ticks: 3, lease: 1, tokens: 3, fails: true}, ends},
		"three for two":               {rules{jobs: 2, hands: 3, limit: 2, ticks: 2, lease: 1, tokens: 2}, []sight{sawDone, sawLost, sawUnknown, sawFound, sawTakeover}},
		"enqueue":                     {rules{jobs: 2, hands: 1, limit: 1, ticks: 1, lease: 1, tokens: 3, late: 1, enqueue: true, fails: true}, []sight{sawDone, sawFail, sawReturn, sawUnknown}},
		"own ids":                     {rules{jobs: 1, hands: 1, limit: 1, ticks: 2, lease: 1, tokens: 4, late: 1, enqueue: true, repeats: true, marked: true, forgetful: true, fails: true}, []sight{sawDone, sawFail, sawAgain, sawUnknown}},
		"made ids":                    {rules{jobs: 2, hands: 1, limit: 1, ticks: 1, lease: 1, tokens: 3, late: 1, enqueue: true, repeats: true, fails: true}, []sight{sawDone, sawFail, sawAgain, sawUnknown}},
		"tokens of a clock":           {rules{jobs: 2, hands: 2, limit: 1, ticks: 2, lease: 1, tokens: 4, late: 1, leaps: true}, []sight{sawDone, sawTakeover, sawLost}},
		"dead letters":                {rules{jobs: 1, hands: 2, limit: 1, ticks: 2, lease: 1, tokens: 3, late: 1, fails: true, operator: 2}, slices.Concat(ends, []sight{sawBury, sawRequeue, sawDiscard})},
		"renewals":                    {rules{jobs: 1, hands: 2, limit: 1, ticks: 4, lease: 2, tokens: 2, late: 2, renewals: true}, []sight{sawRenewal, sawLost, sawTakeover}},
		"conflicts":                   {rules{jobs: 1, hands: 2, limit: 1, ticks: 3, lease: 1, tokens: 2, late: 1, conflicts: true}, []sight{sawDone, sawTakeover}},
		"forgetful":                   {rules{jobs: 2, hands: 2, limit: 1, ticks: 2, lease: 1, tokens: 2, late: 1, fails: true, forgetful: true}, slices.Concat(ends, []sight{sawBesides, sawBusy})},
		"forgetful, one job":          {rules{jobs: 1, hands: 2, limit: 1, ticks: 3, lease: 1, tokens: 3, late: 1, fails: true, forgetful: true}, slices.Concat(ends, []sight{sawBesides, sawBury})},
		"permits":                     {rules{hands: 2, permits: 2, limit: 1, ticks: 3, lease: 1, tokens: 3, late: 1}, uses},
		"three permits":               {rules{hands: 3, permits: 3, limit: 1, ticks: 2, lease: 1, tokens: 3}, uses},
		"permits of two":              {rules{hands: 3, permits: 3, limit: 2, ticks: 2, lease: 1, tokens: 3}, uses},
		"permits, renewed":            {rules{hands: 2, permits: 2, limit: 1, ticks: 4, lease: 2, tokens: 2, late: 1, renewals: true}, slices.Concat(uses, []sight{sawRenewal})},
		"permits, waiting":            {rules{hands: 2, permits: 2, limit: 1, ticks: 3, lease: 1, tokens: 3, late: 1, waits: true}, uses},
		"broken jobs":                 {rules{jobs: 1, hands: 3, limit: 1, ticks: 2, lease: 1, tokens: 3, breaks: 1}, []sight{sawDone, sawLost, sawBreak, sawCancel, sawUnknown}},
		"broken jobs, late":           {rules{jobs: 1, hands: 2, limit: 1, ticks: 2, lease: 1, tokens: 2, late: 1, breaks: 1, fails: true, forgetful: true}, []sight{sawDone, sawReturn, sawLost, sawBreak, sawCancel, sawBesides}},
		"broken permits":              {rules{hands: 2, permits: 2, limit: 1, ticks: 2, lease: 1, tokens: 3, late: 1, breaks: 1, waits: true}, []sight{sawPermit, sawRelease, sawLost, sawBreak, sawUnknown}},
		"permits passed on":           {rules{hands: 2, permits: 2, process: 2, limit: 1, ticks: 3, lease: 1, tokens: 3, late: 1, waits: true}, slices.Concat(uses, handed[:1], []sight{sawLeft})},
		"permits passed on, operated": {rules{hands: 2, permits: 2, process: 2, limit: 1, ticks: 2, lease: 1, tokens: 3, late: 1, waits: true, operates: true}, slices.Concat(uses, handed)},
		"permits passed on, 2":        {rules{hands: 2, permits: 2, process: 2, limit: 2, ticks: 3, lease: 1, tokens: 4, late: 1, waits: true}, []sight{sawPermit, sawRelease, sawBesides, sawLost, sawUnknown, sawSweep, sawFound, sawPassed, sawLeft}},
		"permits passed on, 3":        {rules{hands: 3, permits: 3, process: 2, limit: 1, ticks: 2, lease: 1, tokens: 3, waits: true}, slices.Concat(uses, handed[:1])},
		"permits passed on, broken":   {rules{hands: 2, permits: 2, process: 2, limit: 1, ticks: 2, lease: 1, tokens: 3, late: 1, breaks: 1, waits: true}, slices.Concat(handed[:1], []sight{sawBreak, sawLost, sawUnknown})},
		"permits passed on, renewed":  {rules{hands: 2, permits: 2, process: 2, limit: 1, ticks: 4, lease: 2, tokens: 2, late: 1, renewals: true}, slices.Concat(handed[:1], []sight{sawRenewal, sawLost})},
		"permits and jobs":            {rules{jobs: 1, hands: 2, permits: 1, limit: 1, ticks: 2, lease: 1, tokens: 3, late: 1, fails: true}, slices.Concat(uses, ends)},
		"permits and jobs 2":          {rules{jobs: 1, hands: 2, permits: 1, limit: 2, ticks: 2, lease: 1, tokens: 3, late: 1}, []sight{sawDone, sawPermit, sawRelease, sawSweep, sawTakeover}},
	}
}

// bounds widens a search, and narrows those of permits, the widest, for a short run.
func (r rules) bounds() rules {
	if quick() {
		if r.permits > 0 && !r.renewals {
			r.ticks = min(r.ticks, 2)
		}
		return r
	}
	if r.late == 1 {
		r.late = maxLate
	}
	if soak() {
		r.tokens++
		if r.late == 0 {
			r.late = 1
		}
	}
	return r
}

func run(r rules) (searched, sights) {
	m := &model{rules: r}
	return search(m.begin(), m.next), m.seen
}

func TestModel(t *testing.T) {
	var states atomic.Int64
	t.Cleanup(func() { t.Logf("%d states in all", states.Load()) })
	runs := modelRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s := run(runs[name].bounds())
			mustHold(t, name, f, s, runs[name].want...)
			states.Add(int64(f.states))
		})
	}
}

// TestModelMutants leaves out one rule at a time.
func TestModelMutants(t *testing.T) {
	runs := modelRuns()
	for _, m := range []struct {
		name, run, promise string
		mutate             func(*rules)
	}{
		{"start without running < limit", "jobs", overTheLimit, func(r *rules) { r.noLimit = true }},
		{"Acquire without running < limit", "permits", overTheLimit, func(r *rules) { r.noLimit = true }},
		{"start without 'as it was read'", "jobs", notCounted, func(r *rules) { r.unseen = true }},
		{"start without 'as it was read', with permits", "permits and jobs", notCounted, func(r *rules) { r.unseen = true }},
		{"Done without the token", "one job", others, func(r *rules) { r.noOwn = true }},
		{"takeover counts running+1", "one job", notCounted, func(r *rules) { r.takeoverCounts = true }},
		{"Fail without running-1", "one job", notCounted, func(r *rules) { r.failKeepsRunning = true }},
		{"Done without running-1", "one job", notCounted, func(r *rules) { r.doneKeepsRunning = true }},
		{"Return without queued+1", "one job", notCounted, func(r *rules) { r.returnNotQueued = true }},
		{"bury without dead+1", "one job", notCounted, func(r *rules) { r.buryNotDead = true }},
		{"counters in a request of their own", "one job", notCounted, func(r *rules) { r.split, r.late = true, 0 }},
		{"sweep without 'as seen'", "permits", notCounted, func(r *rules) { r.blindSweep = true }},
		{"Release without 'attribute exists'", "permits", notCounted, func(r *rules) { r.blindRelease = true }},
		{"passing on without running <= limit", "permits passed on, operated", overTheLimit, func(r *rules) { r.passAtAnyLimit = true }},
		{"passing on in a pause", "permits passed on, operated", inPause, func(r *rules) { r.passInPause = true }},
		{"passing on under the same token", "permits passed on", oldToken, func(r *rules) { r.passOldToken = true }},
		{"passing on without 'attribute exists'", "permits passed on", notCounted, func(r *rules) { r.passOfNothing = true }},
		{"passing on to one that has a permit", "permits passed on, 2", notCounted, func(r *rules) { r.passOntoPermit = true }},
		{"the deadline of what is passed on counts from the answer", "permits passed on", permitGone, func(r *rules) { r.passFromAnswer = true }},
		{"no answer is a permit passed on", "permits passed on, 2", permitGone, func(r *rules) { r.passBelieved = true }},
		{"no answer is no permit passed on", "permits passed on, 2", falseLoss, func(r *rules) { r.passForgotten = true }},
		{"passing on to one that may have a permit", "permits passed on", falseLoss, func(r *rules) { r.passToUnsure = true }},
		{"who is passed a permit that was taken twice is sure of it", "permits passed on, 2", falseLoss, func(r *rules) { r.passSure, r.late, r.ticks = true, maxLate, 2 }},
		{"takeover without the lease", "one job", twoOnOne, func(r *rules) { r.noLease = true }},
		{"sweep without the lease", "permits", permitGone, func(r *rules) { r.noLease = true }},
		{"a broken job leaves no evidence", "broken jobs, late", falseSuccess, func(r *rules) { r.noEvidence = true }},
		{"a broken permit leaves no evidence", "broken permits", falseLoss, func(r *rules) { r.noEvidence = true }},
		{"a job is broken without the token", "broken jobs, late", others, func(r *rules) { r.blindBreak = true }},
		{"a job is cancelled while it runs", "broken jobs, late", others, func(r *rules) { r.anyCancel = true }},
		{"takeover under the same token", "one job", tokenTwice, func(r *rules) { r.sameToken = true }},
		{"every failed condition is a loss, jobs", "forgetful", falseLoss, func(r *rules) { r.hastyLost = true }},
		{"every failed condition is a loss, permits", "permits", falseLoss, func(r *rules) { r.hastyLost = true }},
		{"no answer is a success", "one job", falseSuccess, func(r *rules) { r.hopeful = true }},
		{"a release that finds nothing was lost, resent", "permits", falseLoss, func(r *rules) { r.cleanLost = true }},
		{"evidence against a permit that was taken twice", "permits", falseLoss, func(r *rules) { r.anyEvidence = true }},
		{"ids without rows of their own", "own ids", "a job", func(r *rules) { r.marked = false }},
		{"start without the token", "tokens of a clock", tokenTwice, func(r *rules) { r.anyToken = true }},
		{"success by deadline, without the deadline, jobs", "one job", falseSuccess, func(r *rules) { r.noDeadline = true }},
		{"success by deadline, without the deadline, permits", "permits", falseSuccess, func(r *rules) { r.noDeadline = true }},
	} {
		r := runs[m.run].rules
		m.mutate(&r)
		f, _ := run(r)
		mustFind(t, m.name, m.promise, f)
	}
}

// TestModelTokens: which promises need that the service remembers the
// ClientRequestTokens of applied transactions. Starts and ends of jobs do not
// ("forgetful" above): tokens are in their conditions.
func TestModelTokens(t *testing.T) {
	runs := modelRuns()
	r := runs["enqueue"].rules
	r.forgetful = true
	f, _ := run(r)
	mustFind(t, "an Enqueue is forgotten, and arrives again", comesBack, f)
	r.noDone = true
	f, _ = run(r)
	mustFind(t, "an Enqueue is forgotten, and arrives again after a Fail", isTwice, f)
	r = runs["dead letters"].rules
	r.forgetful, r.hands, r.ticks, r.tokens = true, 1, 1, 4
	f, _ = run(r)
	mustFind(t, "a Requeue is forgotten, and arrives again", appliedTwice, f)
}

// TestModelDeadlines: the deadline of a hold must count from when its end was
// reckoned, whatever lies between that and the answer.
func TestModelDeadlines(t *testing.T) {
	runs := modelRuns()
	r := runs["permits, waiting"].rules
	r.fromLastTry = true
	f, _ := run(r)
	mustFind(t, "an earlier try of an Acquire that waits arrives late: its end is the row's, the deadline would be of the last try", permitGone, f)
	r = runs["conflicts"].rules
	r.fromLastStart = true
	f, _ = run(r)
	mustFind(t, "a start meets conflicts for long: its end is reckoned before them, its deadline would be after", twoOnOne, f)
}

// TestModelGap is what the protocol does not promise: attempts are starts, so a
// job may be given up that nobody has worked on.
func TestModelGap(t *testing.T) {
	r := modelRuns()["one job"].rules
	r.unworked = true
	f, _ := run(r)
	mustFind(t, "all starts of a job are without an answer", unworked, f)
}

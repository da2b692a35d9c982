package lockless

import (
	"maps"
	"slices"
	"testing"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/search"
)

var (
	jointOld    = jointItem{exists: true, ring: ids8{90}, last: 90}
	jointLocked = jointItem{exists: true, ring: ids8{90}, last: 90, token: 5, stolen: 3} // locked before
	jointPlain  = jointItem{exists: true, last: 90, token: 5, stolen: 3}                 // of a type without a version
)

// jointRuns are the searches of the protocol as it is, each wide in one way.
func jointRuns() map[string]jointRules {
	return map[string]jointRules{
		// Each reads both and writes one: only one of two may be applied.
		"write skew":      {plans: [][maxItems]part{{changed, checked}, {checked, changed}}, start: []jointItem{jointOld, jointOld}, runs: 2, tries: 2, copies: 1, events: 1},
		"a circle":        {plans: [][maxItems]part{{changed, checked}, {untouched, changed, checked}, {checked, untouched, changed}}, start: []jointItem{jointOld, jointOld, jointOld}, runs: 1, tries: 1, copies: 1, events: 0},
		"mixed":           {plans: [][maxItems]part{{changed, locked}, {locked, checked}}, start: []jointItem{jointLocked, jointPlain}, runs: 2, tries: 2, copies: 1, events: 1, breaks: true},
		"three, mixed":    {plans: [][maxItems]part{{changed, locked}, {untouched, lockedOnly, changed}, {changed, untouched, event}}, start: []jointItem{jointOld, jointPlain, jointOld}, runs: 1, tries: 1, copies: 1, events: 0},
		"no token":        {plans: [][maxItems]part{{changed, locked}}, start: []jointItem{jointLocked, jointPlain}, runs: 2, tries: 2, copies: 1, events: 3, breaks: true, forgets: true},
		"checks in doubt": {plans: [][maxItems]part{{changed, checked}}, start: []jointItem{jointLocked, jointLocked}, runs: 2, tries: 2, copies: 1, events: 3, forgets: true},
		"deletes":         {plans: [][maxItems]part{{removed, lockedGone}, {changed, untouched}}, start: []jointItem{jointLocked, jointPlain}, runs: 2, tries: 2, copies: 1, events: 1, forgets: true},
		"events":          {plans: [][maxItems]part{{event, changed}, {changed, event}}, start: []jointItem{jointOld, {}}, runs: 2, tries: 2, copies: 1, events: 1},
		"by hand":         {plans: [][maxItems]part{{changed, checked}}, start: []jointItem{jointLocked, jointOld}, runs: 2, tries: 2, copies: 1, events: 2, hands: true, forgets: true},
		"required":        {plans: [][maxItems]part{{changed, required}, {changed, untouched, required}}, start: []jointItem{jointOld, jointPlain, jointPlain}, runs: 2, tries: 2, copies: 1, events: 2, breaks: true},
		// Under one id: runs of several processes, and of one that was told "unknown" and
		// comes again, which is one that begins later.
		"one id":          {plans: [][maxItems]part{{changed, changed}, {untouched, changed, checked}}, start: []jointItem{jointOld, jointOld, jointOld}, runs: 2, tries: 2, copies: 1, events: 1, once: true, keeps: true, forgets: true},
		"one id, created": {plans: [][maxItems]part{{changed, removed}, {changed, checked}}, start: []jointItem{{}, jointOld}, runs: 2, tries: 2, copies: 1, events: 1, once: true, keeps: true},
		"one id, events":  {plans: [][maxItems]part{{event, changed}, {event, untouched, changed}}, start: []jointItem{jointOld, jointOld, jointOld}, runs: 2, tries: 2, copies: 1, events: 1, once: true, keeps: true},
		"one id, locks":   {plans: [][maxItems]part{{changed, locked}, {checked, locked}}, start: []jointItem{jointLocked, jointPlain}, runs: 2, tries: 2, copies: 1, events: 1, breaks: true, once: true, keeps: true, forgets: true},
		"passed on":       {plans: [][maxItems]part{{locked, lockedOnly}, {changed, locked}}, start: []jointItem{jointPlain, jointLocked}, runs: 2, tries: 2, copies: 1, events: 1, breaks: true, forgets: true, passes: true},
		"locks":           {plans: [][maxItems]part{{locked, lockedOnly}, {lockedOnly, locked}}, start: []jointItem{jointPlain, jointLocked}, runs: 2, tries: 2, copies: 1, events: 1, breaks: true, forgets: true},
	}
}

// bounds widens a search for a full run and for a soak.
func (r jointRules) bounds() jointRules {
	switch {
	case soak():
		r.events++
		r.tries = max(r.tries, 2)
	case quick():
		r.events = min(r.events, 2)
		if len(r.plans) == 2 {
			r.runs = 1
		}
	case len(r.plans) == 3:
		r.events = 1
	}
	return r
}

func runJoint(r jointRules) (searched, verdicts) {
	m := &jointModel{jointRules: r, given: verdicts{}}
	w := jointWorld{events: r.events, next: 100}
	m.items = copy(w.items[:], r.start)
	for i, plan := range r.plans {
		for k, p := range plan {
			if it := &w.items[k]; p == required { // by a handle that it was given
				it.by, it.held, it.token = int8(i+1), it.token, it.token+1
				w.who[i].known |= 1 << k
				w.who[i].runs[0].base[k] = *it
			}
		}
	}
	return search.Actors([]jointWorld{w}, m.next), m.given
}

func TestModelTransaction(t *testing.T) {
	states := 0
	runs := jointRuns()
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		f, v := runJoint(runs[name].bounds())
		mustHold(t, name, f, v)
		states += f.States
	}
	t.Logf("%d states in all", states)
}

// TestModelTransactionMutants leaves out one rule at a time.
func TestModelTransactionMutants(t *testing.T) {
	runs := jointRuns()
	for _, m := range []struct {
		name, run string
		mutate    func(*jointRules)
	}{
		{"what is only read is not validated", "write skew", func(r *jointRules) { r.noChecks = true }},
		{"what is only read is not validated, in a circle", "a circle", func(r *jointRules) { r.noChecks = true }},
		{"As read without the ring", "write skew", func(r *jointRules) { r.noRing = true }},
		{"As read without lockToken", "by hand", func(r *jointRules) { r.noToken, r.judgePart = true, blindToLocks }},
		{"As read without lockedBy", "mixed", func(r *jointRules) { r.noLock, r.noToken = true, true }},
		{"a lock in the way is taken for the end of the transaction", "by hand", func(r *jointRules) { r.judgePart = blindToLocks }},
		{"a holder's condition without its token", "no token", func(r *jointRules) { r.ownByID = true }},
		{"a lock is passed on under its token", "passed on", func(r *jointRules) { r.sameToken = true }},
		{"a holder's write without Own", "mixed", func(r *jointRules) { r.noOwn = true }},
		{"what is required is not compared", "required", func(r *jointRules) { r.noRequire = true }},
		{"what is required is compared by its holder alone", "required", func(r *jointRules) { r.byHolder = true }},
		{"a part is applied alone", "write skew", func(r *jointRules) { r.notAtomic = true }},
		{"an item that is read is not asked for the id", "one id", func(r *jointRules) { r.noLookup = true }},
		{"an item that is locked is not asked for the id", "one id, locks", func(r *jointRules) { r.noLookup = true }},
		{"a write that has not read does not ask for the id", "one id, events", func(r *jointRules) { r.blindEvent = true }},
		{"only the first item remembers the id", "one id", func(r *jointRules) { r.oneKeeps = true }},
		{"items that show nothing prove that nothing was applied", "one id", func(r *jointRules) { r.unseenIsLost = true }},
		{"runs again although the request may arrive yet", "by hand", func(r *jointRules) { r.againInDoub = true }},
		{"a refusal is taken at its word", "checks in doubt", func(r *jointRules) {
			r.judgeAll = func([]protocol.Verdict, bool) protocol.Verdict { return protocol.Lost }
		}},
		{"no evidence is taken for applied", "checks in doubt", func(r *jointRules) {
			r.judgeAll = func(parts []protocol.Verdict, _ bool) protocol.Verdict {
				if v := JudgeParts(parts...); v != protocol.Undecided {
					return v
				}
				return protocol.Committed
			}
		}},
		{"a checked item that has moved proves that nothing was applied", "checks in doubt", func(r *jointRules) { r.judgePart = trustsChecks }},
		{"a deleted item that is gone proves that it was applied", "deletes", func(r *jointRules) { r.judgePart = trustsGone }},
		{"a ring out of sight proves that nothing was applied", "checks in doubt", func(r *jointRules) { r.judgePart = trustsSight }},
		{"a release that finds nothing to release proves that it was applied", "locks", func(r *jointRules) {
			r.released = func(v protocol.Verdict) protocol.Verdict {
				if v == protocol.Undecided {
					return protocol.Committed
				}
				return v
			}
		}},
	} {
		r := runs[m.run]
		m.mutate(&r)
		f, _ := runJoint(r)
		f.MustFind(t, m.name)
	}
}

// blindToLocks does not see that only a lock stands in the way.
func blindToLocks(p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	if v := JudgePart(jointCore, p, id, image, clean); v != protocol.Undecided || p.Hold != nil || !p.Writes {
		return v
	}
	return protocol.RingVerdict(id, jointCore.Ring(p.Base), jointCore.Ring(image))
}

func trustsChecks(p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	if p.Hold == nil && !p.Writes && !p.Removes && !AsRead(jointCore, p.Base, image) {
		return protocol.Lost
	}
	return JudgePart(jointCore, p, id, image, clean)
}

func trustsGone(p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	if p.Removes && len(image) == 0 {
		return protocol.Committed
	}
	return JudgePart(jointCore, p, id, image, clean)
}

func trustsSight(p Part, id protocol.WriteID, image ddb.Item, clean bool) protocol.Verdict {
	if v := JudgePart(jointCore, p, id, image, clean); v != protocol.Undecided || !p.Writes || AsRead(jointCore, p.Base, image) {
		return v
	}
	return protocol.Lost
}

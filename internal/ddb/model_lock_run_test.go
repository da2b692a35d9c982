package ddb

import (
	"strings"
	"testing"
)

var (
	born    = lockItem{exists: true, life: 1, stolen: -1}                                   // never locked
	used    = lockItem{exists: true, life: 1, token: tokensPerLife + 1, stolen: 0}          // locked before
	unborn  = lockItem{stolen: -1}                                                          // no item
	anyItem = []lockItem{born, used}
)

// lockRuns are the searches of the protocol as it is.
func lockRuns() map[string]lockRules {
	runs := map[string]lockRules{
		"commits":      {acquirers: 3, tries: 2, copies: 1, breaks: 1, lives: 1, ops: []op{commit}, start: []lockItem{used}},
		"late commits": {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: anyItem, lateCommit: true},
		"deletes":      {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove, release}, start: anyItem},
		"extensions":   {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove}, start: []lockItem{used}, extend: true},
		"wild clocks":  {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, release}, start: anyItem, wildClocks: true},
		"by hand":      {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove}, start: anyItem, byHand: true},
		"upserts":      {acquirers: 2, tries: 2, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove, release}, start: []lockItem{unborn}, upsert: true},
	}
	return runs
}

func run(r lockRules) (searched, verdicts) {
	m := &lockModel{lockRules: r, given: verdicts{}}
	return search(m.starts(), m.next), m.given
}

func TestModelLock(t *testing.T) {
	for name, r := range lockRuns() {
		f, v := run(r)
		mustHold(t, name, f, v)
		if strings.Contains(name, "x") {
			continue
		}
	}
}

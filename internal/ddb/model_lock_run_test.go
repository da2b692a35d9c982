package ddb

import (
	"os"
	"strings"
	"testing"
	"time"
)

var (
	born    = lockItem{exists: true, life: 1, stolen: -1}                          // never locked
	used    = lockItem{exists: true, life: 1, token: tokensPerLife + 1, stolen: 0} // locked before
	unborn  = lockItem{stolen: -1}                                                 // no item
	anyItem = []lockItem{born, used}
)

// lockRuns are the searches of the protocol as it is.
func lockRuns() map[string]lockRules {
	runs := map[string]lockRules{
		"a1": {acquirers: 3, ticks: 3, takes: 1, tries: 2, ghosts: 0, copies: 1, breaks: 1, lives: 1, ops: []op{commit}, start: []lockItem{used}},
		"a2": {acquirers: 3, ticks: 3, takes: 1, tries: 2, ghosts: 0, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: []lockItem{used}},
		"a3": {acquirers: 3, ticks: 2, takes: 1, tries: 2, ghosts: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: []lockItem{used}},
		"b1": {acquirers: 2, ticks: 3, takes: 2, tries: 2, ghosts: 1, copies: 1, breaks: 0, lives: 2, ops: []op{commit}, start: []lockItem{used}},
		"b2": {acquirers: 2, ticks: 3, takes: 2, tries: 2, ghosts: 1, copies: 1, breaks: 1, lives: 1, ops: []op{commit}, start: []lockItem{used}},
		"b3": {acquirers: 2, ticks: 2, takes: 2, tries: 2, ghosts: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit}, start: []lockItem{used}},
		"b4": {acquirers: 2, ticks: 2, takes: 2, tries: 2, ghosts: 1, copies: 1, breaks: 1, lives: 2, ops: []op{commit, remove, release}, start: []lockItem{used}},
	}
	return runs
}

func run(r lockRules) (searched, verdicts) {
	m := &lockModel{lockRules: r, given: verdicts{}}
	return search(m.starts(), m.next), m.given
}

func TestModelLock(t *testing.T) {
	for name, r := range lockRuns() {
		if x := os.Getenv("X"); x != "" && !strings.Contains(name, x) {
			continue
		}
		start := time.Now()
		f, v := run(r)
		mustHold(t, name, f, v)
		t.Log(time.Since(start))
	}
}

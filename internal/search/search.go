// Package search walks through every state that a model can come to. It is for tests only.
//
// A model is a comparable value, and a function from it to the steps that are possible
// there. A step may say that it breaks a promise: the search then ends, and shows the
// shortest way to it. A mutant is the same model with one rule left out: the search must
// find a broken promise in it, else it would not find one in the protocol either.
package search

import "slices"

// Emit takes one step that is possible: its name, the state after it, and which promise is
// broken there, if any.
type Emit[S comparable, N any] func(name N, to S, wrong string)

// Step is one of the way to a broken promise.
type Step[S comparable, N any] struct {
	From S
	Name N
}

// Found is what a search found.
type Found[S comparable, N any] struct {
	States int
	Wrong  string // the first promise that was broken; "" if none was
	Way    []Step[S, N]
}

// tooMany states are not a model that anybody can run.
const tooMany = 30_000_000

// All visits all states that can be reached, those that take few steps first. Names are kept
// of no step: the way to a broken promise is walked again for them.
func All[S comparable, N any](starts []S, next func(*S, Emit[S, N])) (found Found[S, N]) {
	type node struct{ before, nth int32 } // nth step from the state before
	var nodes []node
	var queue []S
	seen := make(map[S]struct{})
	add := func(s S, before, nth int) {
		if _, ok := seen[s]; !ok {
			seen[s] = struct{}{}
			nodes = append(nodes, node{int32(before), int32(nth)})
			queue = append(queue, s)
		}
	}
	for n, s := range starts {
		add(s, -1, n)
	}
	last, nth := -1, 0
	for at := 0; len(queue) > 0 && last < 0 && len(nodes) < tooMany; at++ {
		s, n := queue[0], 0
		queue = queue[1:]
		next(&s, func(_ N, to S, wrong string) {
			if n++; wrong == "" {
				add(to, at, n)
			} else if last < 0 {
				last, nth, found.Wrong = at, n, wrong
			}
		})
	}
	if found.States = len(nodes); found.States >= tooMany {
		found.Wrong = "the search has no end"
	}
	if last < 0 {
		return found
	}
	var way []int32
	for way = []int32{int32(nth)}; nodes[last].before >= 0; last = int(nodes[last].before) {
		way = append(way, nodes[last].nth)
	}
	s := starts[nodes[last].nth]
	for _, nth := range slices.Backward(way) {
		n, from := int32(0), s
		next(&from, func(name N, to S, _ string) {
			if n++; n == nth {
				s = to
				found.Way = append(found.Way, Step[S, N]{from, name})
			}
		})
	}
	return found
}

// Trace is the way in words.
func (f Found[S, N]) Trace(say func(Step[S, N]) string) (lines []string) {
	for _, step := range f.Way {
		lines = append(lines, say(step))
	}
	return lines
}

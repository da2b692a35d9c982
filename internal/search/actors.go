package search

import (
	"fmt"
	"strings"
	"testing"
)

// Tell takes one step of a model of several actors: who does what, the state after it, and
// what is wrong there, if anything is.
type Tell[S comparable] func(who, what string, to S, wrong string)

// Result is what a search of such a model found.
type Result struct {
	States int
	Wrong  string   // the first promise that was broken; "" if none was
	Trace  []string // the shortest way there
}

// Actors is All of a model of several actors.
func Actors[S comparable](starts []S, next func(S, Tell[S])) Result {
	type name struct{ who, what string }
	f := All(starts, func(s *S, step Emit[S, name]) {
		next(*s, func(who, what string, to S, wrong string) { step(name{who, what}, to, wrong) })
	})
	return Result{f.States, f.Wrong, f.Trace(func(s Step[S, name]) string { return s.Name.who + ": " + s.Name.what })}
}

func (f Result) String() string {
	return fmt.Sprintf("%s, after\n\t%s", f.Wrong, strings.Join(f.Trace, "\n\t"))
}

// MustFind fails the test if a search found nothing wrong.
func (f Result) MustFind(t *testing.T, name string) {
	t.Helper()
	if f.Wrong == "" {
		t.Errorf("%s: survived %d states", name, f.States)
		return
	}
	t.Logf("%s: found within %d states, %d steps: %s", name, f.States, len(f.Trace), f.Wrong)
	if testing.Verbose() {
		t.Logf("%v", f)
	}
}

package history_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/suite/history"
)

var (
	ok       = history.Result{Verdict: history.OK}
	notFound = history.Result{Verdict: history.NotFound}
	exists   = history.Result{Verdict: history.Exists}
	refused  = history.Result{Verdict: history.Refused}
	absent   = history.State{}
)

func read(v int64) history.Result {
	return history.Result{Verdict: history.OK, Old: history.Present(v)}
}
func wrote(v int64) history.Result {
	return history.Result{Verdict: history.OK, New: history.Present(v)}
}
func changed(from, to int64) history.Result {
	return history.Result{Verdict: history.OK, Old: history.Present(from), New: history.Present(to)}
}
func unknown(r history.Result) history.Result {
	r.Verdict = history.Unknown
	return r
}

// script writes a history by hand.
type script struct{ *history.Recorder }

// do is an operation during which nothing else happens.
func (s script) do(k history.Kind, r history.Result) { s.Begin(0, k)(r) }

var histories = []struct {
	name string
	fine bool
	run  func(s script)
}{
	{"nothing", true, func(script) {}},
	{"one life after another", true, func(s script) {
		s.do(history.Get, notFound)
		s.do(history.Update, notFound)
		s.do(history.Delete, notFound)
		s.do(history.Create, wrote(0))
		s.do(history.Create, exists)
		s.do(history.Get, read(0))
		s.do(history.Update, changed(0, 1))
		s.do(history.Update, refused)
		s.do(history.Update, changed(1, 1))
		s.do(history.Get, read(1))
		s.do(history.Delete, ok)
		s.do(history.Get, notFound)
		s.do(history.Upsert, history.Result{Verdict: history.OK, New: history.Present(5)})
		s.do(history.Upsert, changed(5, 6))
		s.do(history.Update, history.Result{Verdict: history.OK, Old: history.Present(6), New: absent})
		s.do(history.Get, notFound)
	}},
	{"side by side, in the other order", true, func(s script) {
		s.do(history.Create, wrote(0))
		first, second := s.Begin(0, history.Update), s.Begin(1, history.Update)
		first(changed(1, 2))
		second(changed(0, 1))
		s.do(history.Get, read(2))
	}},
	{"one after the other, in the other order", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, changed(1, 2))
		s.do(history.Update, changed(0, 1))
	}},
	{"read of what is being written", true, func(s script) {
		s.do(history.Create, wrote(0))
		update := s.Begin(1, history.Update)
		s.do(history.Get, read(0))
		s.do(history.Get, read(1))
		update(changed(0, 1))
	}},
	{"read that goes back in time", false, func(s script) {
		s.do(history.Create, wrote(0))
		update := s.Begin(1, history.Update)
		s.do(history.Get, read(1))
		s.do(history.Get, read(0))
		update(changed(0, 1))
	}},
	{"lost update", false, func(s script) {
		s.do(history.Create, wrote(0))
		first, second := s.Begin(0, history.Update), s.Begin(1, history.Update)
		first(changed(0, 1))
		second(changed(0, 2))
	}},
	{"applied twice", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, changed(0, 1))
		s.do(history.Get, read(2))
	}},
	{"stale read", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, changed(0, 1))
		s.do(history.Get, read(0))
	}},
	{"acknowledged, then vanished", false, func(s script) {
		s.do(history.Create, wrote(0))
		update := s.Begin(1, history.Update)
		update(changed(0, 1))
		s.do(history.Update, changed(0, 2))
		s.do(history.Get, read(2))
	}},
	{"created twice", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Create, wrote(1))
	}},
	{"back from the dead", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Delete, ok)
		s.do(history.Get, read(0))
	}},
	{"deleted twice", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Delete, ok)
		s.do(history.Delete, ok)
	}},
	{"refused, but applied", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, history.Result{Verdict: history.Refused, Old: history.Present(0), New: history.Present(1)})
		s.do(history.Get, read(1))
	}},
	{"verdict forgotten", false, func(s script) { s.do(history.Get, history.Result{}) }},
	{"verdict that the operation cannot have", false, func(s script) { s.do(history.Create, notFound) }},

	{"unknown took effect", true, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, unknown(changed(0, 1)))
		s.do(history.Get, read(1))
	}},
	{"unknown took effect late", true, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, unknown(changed(0, 1)))
		s.do(history.Get, read(0))
		s.do(history.Get, read(0))
		s.do(history.Update, changed(1, 2))
	}},
	{"unknown never took effect", true, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, unknown(changed(0, 1)))
		s.do(history.Update, changed(0, 2))
		s.do(history.Delete, unknown(ok))
		s.do(history.Create, unknown(wrote(7)))
		s.do(history.Get, unknown(history.Result{}))
		s.do(history.Update, unknown(history.Result{}))
		s.do(history.Get, read(2))
	}},
	{"unknown took effect twice", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, unknown(changed(0, 1)))
		s.do(history.Update, changed(1, 0))
		s.do(history.Update, changed(1, 2))
	}},
	{"unknown took effect, then vanished", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Update, unknown(changed(0, 1)))
		s.do(history.Get, read(1))
		s.do(history.Get, read(0))
	}},
	{"unknown took effect before it was called", false, func(s script) {
		s.do(history.Create, wrote(0))
		s.do(history.Get, read(1))
		s.do(history.Update, unknown(changed(0, 1)))
	}},
	{"unknown delete and create, late", true, func(s script) {
		s.do(history.Create, unknown(wrote(7)))
		s.do(history.Get, notFound)
		s.do(history.Create, wrote(0))
		s.do(history.Delete, unknown(ok))
		s.do(history.Get, read(0))
		s.do(history.Get, notFound)
		s.do(history.Get, notFound)
	}},
	{"unknown create, long after a delete", true, func(s script) {
		s.do(history.Create, unknown(wrote(7)))
		s.do(history.Create, wrote(0))
		s.do(history.Delete, ok)
		s.do(history.Get, notFound)
		s.do(history.Get, read(7))
	}},
}

func TestCheck(t *testing.T) {
	for _, c := range histories {
		t.Run(c.name, func(t *testing.T) {
			rec := history.NewRecorder()
			c.run(script{rec})
			err := rec.Check(time.Minute)
			var violation *history.Violation
			if c.fine && err != nil {
				t.Error(err)
			}
			if !c.fine && !errors.As(err, &violation) {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

func TestViolationTellsWhereItGetsStuck(t *testing.T) {
	rec := history.NewRecorder()
	s := script{rec}
	s.do(history.Create, wrote(0))
	first, second := s.Begin(1, history.Update), s.Begin(2, history.Update)
	first(changed(0, 1))
	s.do(history.Get, read(1))
	second(changed(0, 2))
	err := rec.Check(time.Minute)
	var v *history.Violation
	if !errors.As(err, &v) {
		t.Fatal(err)
	}
	want := "history is not linearizable: 3 of 4 operations fit into one order; " +
		"after Get: ok 1 (client 0, events 6 to 7) the item is 1, " +
		"and none of these can be next: Update 0 -> 2: ok (client 2, events 4 to 8)"
	if v.Error() != want {
		t.Errorf("got  %s\nwant %s", v, want)
	}
	path := filepath.Join(t.TempDir(), "picture.html")
	if err := v.Visualize(path); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), `Update 0 -\u003e 1: ok`) {
		t.Error("the picture does not show the history")
	}
}

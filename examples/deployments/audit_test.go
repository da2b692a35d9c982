package main

import (
	"slices"
	"testing"
)

func TestBrokenLogsAreFound(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "dev"}, {ID: "d2", Environment: "dev", Flaky: 1}}
	good := []visit{{began, "d1", 1, "p1"}, {began, "d1", 2, "p2"}, {ended, "d1", 2, "p2"},
		{began, "d2", 3, "p2"}, {failed, "d2", 3, "p2"}, {began, "d2", 4, "p3"}, {ended, "d2", 4, "p3"}}
	p1 := map[string]bool{"p1": true}
	if faults := audit("dev", plan, good, p1); len(faults) != 0 {
		t.Errorf("a good log: %v", faults)
	}
	if n := takenOver(good); n != 1 {
		t.Errorf("%d taken over, want 1", n)
	}
	repeated := slices.Insert(slices.Clone(good), 3, good[2])
	if faults := audit("dev", plan, repeated, p1); len(faults) != 0 {
		t.Errorf("a line that was sent twice: %v", faults)
	}
	unsaid := append([]visit{{began, "d1", 1, "p1"}, {ended, "d1", 1, "p1"}}, good[1:]...)
	if faults := audit("dev", plan, unsaid, p1); len(faults) != 0 {
		t.Errorf("done, but killed before it could say so: %v", faults)
	}
	buried := []visit{{began, "d1", 1, "p1"}, {began, "d2", 3, "p2"}, {failed, "d2", 3, "p2"}, {began, "d2", 4, "p3"}, {ended, "d2", 4, "p3"},
		{began, "d1", 5, "p2"}, {ended, "d1", 5, "p2"}}
	if faults := audit("dev", plan, buried, p1); len(faults) != 0 {
		t.Errorf("put back from the dead letters: %v", faults)
	}
	again := append(slices.Clone(good), visit{began, "d1", 5, "p2"}, visit{ended, "d1", 5, "p2"})
	for name, bad := range map[string]struct {
		log   []visit
		upset map[string]bool
	}{
		"taken over from one that lives": {good, nil},
		"never failed":                   {append(slices.Clone(good[1:3]), good[5:]...), nil},
		"lost":                           {good[:3], p1},
		"done twice":                     {again, p1},
		"two at once":                    {append([]visit{{began, "d1", 1, "p2"}, {began, "d2", 2, "p3"}}, good[2:]...), p1},
		"wrong order":                    {append(slices.Clone(good[3:]), good[:3]...), p1},
		"somebody else":                  {append(slices.Clone(good[:6]), visit{ended, "d2", 4, "p9"}), p1},
		"still at it":                    {good[:6], p1},
		"late write":                     {slices.Insert(slices.Clone(good), 2, visit{ended, "d1", 1, "p1"}), p1},
		"two at once, both live":         {buried, map[string]bool{"p2": true}},
		"nonsense":                       {append(slices.Clone(good), visit{"slept", "d2", 4, "p3"}), p1},
	} {
		if faults := audit("dev", plan, bad.log, bad.upset); len(faults) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

// TestBrokenLogsOfTwoAtOnceAreFound: production takes two at once, and its
// order is that of the tokens.
func TestBrokenLogsOfTwoAtOnceAreFound(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "production"}, {ID: "d2", Environment: "production"}, {ID: "d3", Environment: "production"}}
	good := []visit{{began, "d2", 2, "p2"}, {began, "d1", 1, "p1"}, {ended, "d1", 1, "p1"},
		{began, "d3", 3, "p1"}, {ended, "d2", 2, "p2"}, {ended, "d3", 3, "p1"}}
	if faults := audit("production", plan, good, nil); len(faults) != 0 {
		t.Errorf("a good log: %v", faults)
	}
	three := slices.Clone(good)
	three[2], three[3] = three[3], three[2]
	if faults := audit("production", plan, three, nil); len(faults) != 1 {
		t.Errorf("three at once: %v", faults)
	}
	newest := slices.Clone(good)
	newest[0].token, newest[4].token = 4, 4
	if faults := audit("production", plan, newest, nil); len(faults) != 1 {
		t.Errorf("the newest first: %v", faults)
	}
	late := append(slices.Clone(good), visit{began, "d1", 5, "p2"}, visit{ended, "d1", 1, "p1"})
	if faults := audit("production", plan, late, map[string]bool{"p1": true}); len(faults) == 0 {
		t.Error("late write: not found")
	}
}

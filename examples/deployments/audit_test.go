package main

import (
	"io"
	"maps"
	"slices"
	"testing"
)

func TestBrokenLogsAreFound(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "dev"}, {ID: "d2", Environment: "dev", Flaky: 1}}
	good := []visit{{began, "d1", 1, "p1"}, {began, "d1", 2, "p2"}, {ended, "d1", 2, "p2"},
		{began, "d2", 3, "p2"}, {failed, "d2", 3, "p2"}, {began, "d2", 4, "p3"}, {ended, "d2", 4, "p3"}}
	p1 := map[string]bool{"p1": true}
	if faults := audit("dev", plan, good, evidence{upset: p1}); len(faults) != 0 {
		t.Errorf("a good log: %v", faults)
	}
	if n := takenOver(good); n != 1 {
		t.Errorf("%d taken over, want 1", n)
	}
	repeated := slices.Insert(slices.Clone(good), 3, good[2])
	if faults := audit("dev", plan, repeated, evidence{upset: p1}); len(faults) != 0 {
		t.Errorf("a line that was sent twice: %v", faults)
	}
	unsaid := append([]visit{{began, "d1", 1, "p1"}, {ended, "d1", 1, "p1"}}, good[1:]...)
	if faults := audit("dev", plan, unsaid, evidence{upset: p1}); len(faults) != 0 {
		t.Errorf("done, but killed before it could say so: %v", faults)
	}
	buried := []visit{{began, "d1", 1, "p1"}, {began, "d2", 3, "p2"}, {failed, "d2", 3, "p2"}, {began, "d2", 4, "p3"}, {ended, "d2", 4, "p3"},
		{began, "d1", 5, "p2"}, {ended, "d1", 5, "p2"}}
	if faults := audit("dev", plan, buried, evidence{upset: p1}); len(faults) != 0 {
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
		if faults := audit("dev", plan, bad.log, evidence{upset: bad.upset}); len(faults) == 0 {
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
	if faults := audit("production", plan, good, evidence{}); len(faults) != 0 {
		t.Errorf("a good log: %v", faults)
	}
	three := slices.Clone(good)
	three[2], three[3] = three[3], three[2]
	if faults := audit("production", plan, three, evidence{}); len(faults) != 1 {
		t.Errorf("three at once: %v", faults)
	}
	newest := slices.Clone(good)
	newest[0].token, newest[4].token = 4, 4
	if faults := audit("production", plan, newest, evidence{}); len(faults) != 1 {
		t.Errorf("the newest first: %v", faults)
	}
	late := append(slices.Clone(good), visit{began, "d1", 5, "p2"}, visit{ended, "d1", 1, "p1"})
	if faults := audit("production", plan, late, evidence{upset: map[string]bool{"p1": true}}); len(faults) == 0 {
		t.Error("late write: not found")
	}
}

// TestLateEndsOfTheUpset: two who are upset are at deployments while a third
// begins. Either lease may have been over, and either may still write its end.
func TestLateEndsOfTheUpset(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "production"}, {ID: "d2", Environment: "production"}, {ID: "d3", Environment: "production"}}
	start := []visit{{began, "d1", 1, "p1"}, {began, "d2", 2, "p2"}, {began, "d3", 3, "p3"}}
	dead := []visit{{began, "d1", 4, "p3"}, {ended, "d1", 4, "p3"}} // p1 was killed
	upset := map[string]bool{"p1": true, "p2": true}
	for range 20 { // the verdict must not follow the order of a map
		log := slices.Concat(start, []visit{{ended, "d2", 2, "p2"}, {ended, "d3", 3, "p3"}}, dead)
		if faults := audit("production", plan, log, evidence{upset: upset}); len(faults) != 0 {
			t.Fatalf("a late end that was not refused: %v", faults)
		}
		for _, one := range []string{"p1", "p2"} {
			one := evidence{upset: map[string]bool{one: true}}
			if faults := audit("production", plan, append(slices.Clone(start), visit{began, "d4", 4, "p4"}), one); !slices.Contains(faults, "production: 3 at once, the limit is 2") {
				t.Fatalf("three who are not upset: %v", faults)
			}
		}
	}
}

// TestOrderOfTheUnlogged: d1 was started first, and given up before its visit
// was in the log; so it is begun again at a later place in line.
func TestOrderOfTheUnlogged(t *testing.T) {
	plan := []deployment{{ID: "d1", Environment: "dev"}, {ID: "d2", Environment: "dev"}, {ID: "d3", Environment: "dev"}}
	log := []visit{{began, "d2", 2, "p2"}, {ended, "d2", 2, "p2"}, {began, "d1", 3, "p2"}, {ended, "d1", 3, "p2"},
		{began, "d3", 4, "p2"}, {ended, "d3", 4, "p2"}}
	known := evidence{upset: map[string]bool{"p1": true}, unlogged: map[string]bool{"d1": true}}
	if faults := audit("dev", plan, log, known); len(faults) != 0 {
		t.Errorf("a refused first visit: %v", faults)
	}
	if faults := audit("dev", plan, log, evidence{upset: known.upset}); len(faults) != 1 {
		t.Errorf("the same without a refusal: %v", faults)
	}
	if faults := audit("dev", plan, append(slices.Clone(log[4:]), log[:4]...), known); len(faults) == 0 {
		t.Error("others in the wrong order: not found")
	}
}

// TestTheUnloggedAreKnown: what dispatchers say, and what is found among the dead
// letters, tells which first starts the log may have no line of.
func TestTheUnloggedAreKnown(t *testing.T) {
	o := &office{board: newBoard(io.Discard, nil), troubles: newTroubles()}
	o.follow(event{Kind: began, Who: "p1", ID: "d1"})
	o.follow(event{Kind: refused, Who: "p1", ID: "d1", Unlogged: true}) // taken over again: the log knows its first start
	o.follow(event{Kind: refused, Who: "p1", ID: "d2", Unlogged: true})
	o.follow(event{Kind: failed, Who: "p2", ID: "d3"})
	o.giveUp("d1")
	o.giveUp("d4")
	if want := map[string]bool{"d2": true, "d4": true}; !maps.Equal(o.unlogged, want) {
		t.Errorf("unlogged %v, want %v", o.unlogged, want)
	}
	if want := map[string]bool{"p1": true}; !maps.Equal(o.upset, want) {
		t.Errorf("upset %v, want %v", o.upset, want)
	}
}

package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
)

// TestMain makes the test binary the program when a crew starts it.
func TestMain(m *testing.M) {
	if crew.IsMember() {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestProcessesExtendOneChain(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-workers", "4", "-links", "20", "-work", "2ms", "-lease", "1s"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	// How long it takes until another goes on is not for the test to say: the commit of the
	// one that was killed may have been on its way.
	for _, want := range []string{"chain of 20 links intact", "killed while it held the lock", `\n +w\d +[.#]*x`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-workers", "0"}, {"-links", "3000"}, {"-lease", "1ms"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

func TestBrokenChainsAreFound(t *testing.T) {
	build := func() *chain {
		c := &chain{}
		for n := 1; n <= 3; n++ {
			c.Links = append(c.Links, c.next("w1", n, int64(n)))
		}
		return c
	}
	ack := []event{{Kind: committed, Worker: "w1", N: 1}, {Kind: committed, Worker: "w1", N: 2}, {Kind: acquired, Worker: "w9", N: 1}}
	if faults := build().verify(ack); len(faults) != 0 {
		t.Fatalf("a good chain: %v", faults)
	}
	for name, spoil := range map[string]func(*chain){
		"link changed":      func(c *chain) { c.Links[1].Worker = "w2" },
		"link lost":         func(c *chain) { c.Links = c.Links[1:] },
		"link twice":        func(c *chain) { c.Links = append(c.Links, c.next("w1", 3, 4)) },
		"token not growing": func(c *chain) { c.Links = append(c.Links, c.next("w1", 4, 3)) },
		"last link lost":    func(c *chain) { c.Links = c.Links[:1] },
	} {
		c := build()
		spoil(c)
		if faults := c.verify(ack); len(faults) == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestTimeline(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	all := holds([]event{
		{Kind: acquired, Worker: "w1", At: at(0)}, {Kind: committed, Worker: "w1", At: at(2)},
		{Kind: acquired, Worker: "w2", At: at(3)}, // dies
		{Kind: acquired, Worker: "w1", At: at(7)}, {Kind: committed, Worker: "w1", At: at(9)},
	}, at(10))
	got := timeline(all, []string{"w1", "w2"}, at(0), at(10), 10)
	want := "" +
		"  w1   ###....###\n" +
		"  w2   ...xxxxx..\n" +
		"       0 s 10.0 s\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if faults := overlaps(all); len(faults) != 0 {
		t.Errorf("%v", faults)
	}
	all[0].to = at(5)
	if faults := overlaps(all); len(faults) != 1 {
		t.Errorf("two holders at once: %v", faults)
	}
}

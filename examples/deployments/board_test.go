package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/jobs"
)

func TestBoard(t *testing.T) {
	var out bytes.Buffer
	b := newBoard(&out, []deployment{{ID: "d1", Service: "checkout", Version: "v1.2.3", Environment: "dev"},
		{ID: "d2", Service: strings.Repeat("x", 100), Environment: "test"}})
	b.hear(event{Kind: failed, Who: "p1", Environment: "dev", ID: "d1", Error: "broken"})
	if got, want := out.String(), "p1  in dev: broken\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	b.rows["dev"].now = jobs.Resource{Limit: 1, Queued: 3, Running: 1}
	b.hear(event{Kind: began, Who: "p1", Environment: "dev", ID: "d1"})
	out.Reset()
	b.draw() // not a terminal
	b.table(&out)
	want := "" +
		"environment  limit  queued  running  done  dead  now\n" +
		"dev              1       3        1     0     0  p1 checkout v1.2.3\n" +
		"test             1       0        0     0     0\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", &out, want)
	}
	// Taken over: whoever was there before is not heard any more.
	b.hear(event{Kind: began, Who: "p2", Environment: "dev", ID: "d1"})
	b.hear(event{Kind: refused, Who: "p1", Environment: "dev", ID: "d1"})
	if by := b.rows["dev"].by["d1"]; by != "p2" {
		t.Errorf("d1 is deployed by %q, want p2", by)
	}
	b.hear(event{Kind: ended, Who: "p2", Environment: "dev", ID: "d1"})
	if r := b.rows["dev"]; len(r.done) != 1 || len(r.by) != 0 {
		t.Errorf("%+v", r)
	}
}

func TestLiveBoard(t *testing.T) {
	var out bytes.Buffer
	b := newBoard(&out, []deployment{{ID: "d2", Service: strings.Repeat("x", 100), Environment: "test"}})
	b.live = true
	b.hear(event{Kind: began, Who: "p1", Environment: "test", ID: "d2"})
	b.tell("%s", strings.Repeat("y", 100))
	b.draw()
	first := out.String()
	for line := range strings.Lines(first) {
		if len(strings.TrimSuffix(line, "\n")) > width {
			t.Errorf("%q does not fit", line)
		}
	}
	out.Reset()
	b.draw()
	back := "\x1b[4A\x1b[J"
	if n := strings.Count(first, "\n"); n != 4 || out.String() != back+first {
		t.Errorf("%d lines, then\n%q\nwant\n%q", n, out.String(), back+first)
	}
	for range 20 {
		b.tell("news")
	}
	out.Reset()
	b.draw()
	if n := strings.Count(out.String(), "news"); n != 8 {
		t.Errorf("%d events are shown, want 8", n)
	}
}

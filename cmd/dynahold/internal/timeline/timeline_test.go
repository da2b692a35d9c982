package timeline

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
)

func TestHoldsAreKnownAtLooks(t *testing.T) {
	w := watching("orders", 2*time.Second)
	w.look(0, held("a", "x", 1))
	w.look(2, held("a", "x", 1), held("b", "y", 2))
	w.look(4, held("b", "y", 2), held("c", "z", 3))
	w.look(6, held("b", "y", 2))
	got := Build(w.stop())
	same(t, tell(got), []string{
		"a|x|1|2s or more|given back or broken",
		"b|y|2|4s or more|held at the last look",
		"c|z|3|less than 4s|given back or broken",
	})
	b := got.Locks[1].Holds[0]
	if !b.Absent.Equal(at(0)) || !b.First.Equal(at(2)) || !b.Last.Equal(at(6)) || b.Gone != nil {
		t.Errorf("%+v", b)
	}
}

// That a hold was ended by somebody else is said by the lock of who came next, and by
// nothing else; whether by takeover or by force is said by the lease.
func TestEndsOfHolds(t *testing.T) {
	w := watching("orders", 2*time.Second)
	a, b, c, d, e, f, g := held("a", "x", 1), held("b", "x", 1), held("c", "x", 1), held("d", "x", 1), held("e", "x", 1), held("f", "x", 11), held("g", "x", 11)
	w.look(0, leased(a, 3, 0), leased(b, 30, 0), leased(c, 5, 0), d, leased(e, 3, 0), f, leased(g, 3, 0))
	w.look(4, leased(a, 3, 4), leased(b, 30, 4), leased(c, 5, 4), d, leased(e, 3, 4), f, leased(g, 3, 4))
	w.look(6, lost(held("f", "y", 12), 10), lost(held("g", "y", 99), 98), lost(held("a", "y", 2), 1), lost(held("b", "y", 2), 1), lost(held("c", "y", 2), 1), held("d", "y", 2), leased(e, 3, 6))
	same(t, tell(Build(w.stop())), []string{
		"a|x|1|4s or more|taken over after its lease, then held by y",
		"a|y|2|seen once|held at the last look",
		"b|x|1|4s or more|broken before the end of its lease, then held by y",
		"b|y|2|seen once|held at the last look",
		"c|x|1|4s or more|taken over or broken, then held by y",
		"c|y|2|seen once|held at the last look",
		"d|x|1|4s or more|given back or broken",
		"d|y|2|seen once|held at the last look",
		"e|x|1|6s or more|held at the last look, its lease over",
		"f|x|11|4s or more|given back",
		"f|y|12|seen once|held at the last look",
		"g|x|11|4s or more|given back or broken, after its lease",
		"g|y|99|seen once|held at the last look",
	})
}

// A holder that extends an expired lease has not lost anything.
func TestAnExtendedHoldIsNotOverdue(t *testing.T) {
	w := watching("orders", 2*time.Second)
	a := held("a", "x", 1)
	w.look(0, leased(a, 1, 0))
	w.look(2, leased(a, 1, 2))
	w.look(4, leased(a, 9, 4))
	w.look(6)
	got := Build(w.stop())
	if h := got.Locks[0].Holds[0]; h.Overdue != nil || h.End != Ended {
		t.Errorf("%+v", h)
	}
}

// A token is given out once: what two watches see of it is one hold. What a later watch
// does not find has ended, and what an earlier one did not see has begun after it.
func TestWatchesOfOneTable(t *testing.T) {
	first, second := watching("orders", 2*time.Second), watching("orders", 2*time.Second)
	first.look(0, held("a", "x", 1), held("b", "y", 2), held("h", "by hand", 0))
	first.look(2, held("a", "x", 1), held("b", "y", 2), held("h", "by hand", 0))
	second.look(100, held("a", "x", 1), held("c", "z", 3), held("h", "by hand", 0))
	second.look(102, held("a", "x", 1), held("c", "z", 3), held("h", "by hand", 0))
	killed, later := first.events, second.stop() // the first one was killed
	for name, got := range map[string]Timeline{
		"two files": Build(later, killed),
		"one file":  Build(append(killed[:len(killed):len(killed)], later...)),
	} {
		want := []string{
			"a|x|1|1m42s or more|held at the last look",
			"b|y|2|seen once|given back or broken",
			"c|z|3|2s or more|held at the last look",
			"h|by hand|0|seen once|given back or broken",
			"h|by hand|0|2s or more|held at the last look",
		}
		same(t, tell(got), want)
		b, c := got.Locks[1].Holds[0], got.Locks[2].Holds[0]
		if b.Gone == nil || !b.Gone.Equal(at(100)) || c.Absent == nil || !c.Absent.Equal(at(0)) {
			t.Errorf("%s: %+v, %+v", name, b, c)
		}
		if notes := strings.Join(got.Notes(), "\n"); !strings.Contains(notes, "nobody looked from 2026-11-22T01:00:00Z to 2026-11-22T01:01:40Z") {
			t.Errorf("%s: %s", name, notes)
		}
	}
}

func TestFailedLooksAreAGap(t *testing.T) {
	w := watching("orders", 2*time.Second)
	w.look(0, held("a", "x", 1))
	w.Failed()
	w.look(30, held("a", "x", 1))
	w.look(32)
	got := Build(w.stop())
	gaps := got.Tables[0].Unwatched()
	if len(gaps) != 1 || !gaps[0].From.Equal(at(0)) || !gaps[0].To.Equal(at(30)) {
		t.Errorf("%+v", got.Tables)
	}
	same(t, tell(got), []string{"a|x|1|30s or more|given back or broken"})
}

func TestPartsOfATimeline(t *testing.T) {
	w := watching("orders", 2*time.Second)
	w.look(0, held("a/1", "x", 1), held("b", "y", 2))
	w.look(2, held("b", "y", 2))
	w.look(4, held("c", "z", 3))
	w.look(6)
	for name, c := range map[string]struct {
		names    []string
		from, to time.Time
		want     string
	}{
		"all":      {want: "a/1 b c"},
		"a name":   {names: []string{"b"}, want: "b"},
		"patterns": {names: []string{"a*", "[c]"}, want: "a/1 c"},
		"from":     {from: at(4), want: "c"},
		"to":       {to: at(3), want: "a/1 b"},
	} {
		var got []string
		for _, l := range Build(w.events).Only(c.names).Cut(c.from, c.to).Locks {
			got = append(got, l.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// Names and payloads are what somebody has written into a table.
func TestThePageEscapesForeignTexts(t *testing.T) {
	evil := `<script>alert(1)</script>"'><img src=x onerror=alert(1)>]]>` + "\x00\x1b[2J\u202e"
	w := watching(evil, 2*time.Second)
	l := held(evil, evil, 1)
	l.Sort, l.Payload = evil, evil
	w.look(0, l)
	w.look(2, lost(held(evil, evil, 2), 1))
	var page bytes.Buffer
	if err := Build(w.stop()).HTML(&page, "v1"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<img", `"'>`, "\x00", "\x1b"} {
		if strings.Contains(page.String(), bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	if !strings.Contains(page.String(), "&lt;script&gt;") {
		t.Error("the page lacks the name")
	}
}

// The page stands by itself: nothing is loaded, and every element is closed.
func TestThePageIsWellFormed(t *testing.T) {
	for name, line := range map[string]Timeline{"a night": night(30), "nothing": Build(watching("orders", time.Second).stop())} {
		var page bytes.Buffer
		if err := line.HTML(&page, "v1"); err != nil {
			t.Fatal(err)
		}
		if outside := regexp.MustCompile(`(?i)(https?:|src=|url\(|@import|<script|<link)`).FindString(page.String()); outside != "" {
			t.Errorf("%s: the page loads something: %s", name, outside)
		}
		d := xml.NewDecoder(&page)
		d.Entity = xml.HTMLEntity
		for {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
}

// Records of earlier versions have the number under another name.
func TestOldRecordsTellLosses(t *testing.T) {
	for name, mark := range map[string]func(*record.Lock){
		"new": func(l *record.Lock) { l.NoneLostAbove = 1 },
		"old": func(l *record.Lock) { l.Lost = 1 },
	} {
		w := watching("orders", 2*time.Second)
		w.look(0, held("a", "x", 1))
		next := held("a", "y", 2)
		mark(&next)
		w.look(2, next)
		if end := Build(w.stop()).Locks[0].Holds[0].End; end != Broken {
			t.Errorf("%s: %s", name, end)
		}
	}
}

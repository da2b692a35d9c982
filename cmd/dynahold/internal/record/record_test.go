package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

func lock(name string, token int64, expired bool) Lock {
	return Lock{Name: name, Holder: "till-1", Token: token, Expired: expired}
}

// say is a look's events in short.
func say(events []Event) string {
	var all []string
	for _, e := range events {
		s := string(e.Event)
		if e.Lock != nil {
			s += fmt.Sprintf(" %s %d", e.Lock.Name, e.Lock.Token)
		}
		if e.Before != nil {
			s += fmt.Sprintf(" since %d", int(e.Before.Sub(start).Seconds()))
		}
		all = append(all, s)
	}
	return strings.Join(all, ", ")
}

func TestLooksBecomeEvents(t *testing.T) {
	w := NewWatch("orders", 2*time.Second)
	for i, c := range []struct {
		at     int
		locks  []Lock
		failed bool
		want   string
	}{
		{at: 0, locks: []Lock{lock("a", 1, false), lock("b", 2, true)}, want: "watching, held a 1, held b 2"},
		{at: 2, locks: []Lock{lock("a", 1, false), lock("b", 2, true)}},
		{at: 4, locks: []Lock{lock("a", 1, true), lock("b", 3, false)}, want: "ended b 2 since 2, expired a 1 since 2, taken b 3 since 2"},
		{at: 6, locks: []Lock{lock("a", 1, false)}, want: "ended b 3 since 4, extended a 1 since 4"},
		{at: 65, locks: []Lock{lock("a", 1, false)}},
		{at: 66, locks: []Lock{lock("a", 1, false)}, want: "looked since 65"},
		{at: 68, failed: true},
		{at: 90, locks: []Lock{lock("a", 1, false)}, want: "looked since 66"},
		{at: 92, locks: nil, want: "ended a 1 since 90"},
	} {
		if c.failed {
			w.Failed()
			continue
		}
		if got := say(w.Look(c.locks, at(c.at))); got != c.want {
			t.Errorf("look %d: %s, want %s", i, got, c.want)
		}
	}
	if end := w.Stop(); len(end) != 1 || end[0].Event != Stopped || !end[0].Time.Equal(at(92)) {
		t.Errorf("%+v", end)
	}
	if end := NewWatch("orders", time.Second).Stop(); end != nil {
		t.Errorf("a watch without a look: %+v", end)
	}
}

// A lock that was handed over is taken once more when its holder is known: nobody has
// ended it.
func TestALockThatIsHandedOver(t *testing.T) {
	handed, taken := lock("a", 2, false), lock("a", 2, false)
	handed.Holder, handed.Handed, taken.Holder = "", true, "till-2"
	w := NewWatch("orders", 2*time.Second)
	w.Look([]Lock{handed}, at(0))
	if got := w.Look([]Lock{handed}, at(2)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := w.Look([]Lock{taken}, at(4)); len(got) != 1 || got[0].Event != Taken || got[0].Lock.Holder != "till-2" {
		t.Errorf("%+v", got)
	}
	if got := w.Look([]Lock{taken}, at(6)); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// What is written is read again, and a program that was killed while it wrote has left
// its record all the same.
func TestReadWhatIsWritten(t *testing.T) {
	w := NewWatch("orders", 2*time.Second)
	events := append(w.Look([]Lock{lock("a", 1, false)}, at(0)), w.Look(nil, at(2))...)
	var text bytes.Buffer
	for _, e := range events {
		if err := json.NewEncoder(&text).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"whole":              {text.String(), 3},
		"no last end":        {strings.TrimSuffix(text.String(), "\n"), 3},
		"half a line":        {text.String() + `{"time":"2026-11-`, 3},
		"a watch after that": {text.String() + `{"time":"2026-11-` + "\n" + text.String(), 6},
		"a torn beginning":   {`{"time":"2026-11-` + "\n" + text.String(), 3},
		"empty":              {"", 0},
		"an empty line":      {"\n" + text.String(), 3},
		"a newer event":      {`{"time":"2026-11-22T01:00:00Z","event":"new","table":"t","more":1}` + "\n", 1},
		"carriage ends":      {strings.ReplaceAll(text.String(), "\n", "\r\n"), 3},
		"a long payload":     {`{"time":"2026-11-22T01:00:00Z","event":"held","table":"t","lock":{"payload":"` + strings.Repeat("x", 400<<10) + `"}}` + "\n", 1},
	} {
		got, err := Read(strings.NewReader(c.text), "file")
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %d events, %v", name, len(got), err)
		}
	}
	got, err := Read(&text, "file")
	if err != nil || say(got) != say(events) || got[0].Every != 2000 || got[0].Table != "orders" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestReadRefusesWhatIsNoRecord(t *testing.T) {
	const good = `{"time":"2026-11-22T01:00:00Z","event":"looked","table":"t"}` + "\n"
	for text, want := range map[string]string{
		"hello\n":                                "file, line 1 is no event of locks watch",
		"hello":                                  "file, line 1 is no event of locks watch",
		good + "[]\n" + good:                     "file, line 2 is no event of locks watch",
		good + `{"name":"a"}` + "\n":             `it has no "event"`,
		good + `{"time":"2026-11-` + "\n" + good: "file, line 2 is no event of locks watch",
		good + "a look failed\n" + `{"time":"2026-11-22T01:00:00Z","event":"watching","table":"t"}` + "\n": "file, line 2 is no event of locks watch",
		good + `{"time":"2026-11-` + "\n" + `{"time":"2026-11-` + "\n":                                     "file, line 2 is no event of locks watch",
		`{"time":"2026-11-22T01:00:00Z","event":"looked"}` + "\n":                                          `it has no "table"`,
		`{"event":"looked","table":"t"}` + "\n":                                                            `it has no "time"`,
		`{"time":"2026-11-22T01:00:00Z","event":"held","table":"t"}` + "\n":                                `"held" has no "lock"`,
		`{"time":"` + strings.Repeat("x", maxLine+100<<10) + "\"}\n" + good:                                "line 1: more than",
	} {
		if _, err := Read(strings.NewReader(text), "file"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
}

// A watch says that a token was lost where it has seen it held, and as long as that is the
// newest.
func TestAWatchTellsWhatItSawLost(t *testing.T) {
	number := func(l Lock, above int64) Lock { l.NoneLostAbove = above; return l }
	w := NewWatch("orders", 2*time.Second)
	for i, c := range []struct {
		lock Lock
		lost int64
	}{
		{number(lock("a", 5, false), 4), 0}, // the first hold of all, perhaps
		{number(lock("a", 6, false), 5), 5},
		{number(lock("a", 6, true), 5), 5},
		{number(lock("a", 7, false), 5), 5}, // 6 was given back
		{number(lock("a", 9, false), 8), 0}, // nobody saw 8
		{number(lock("b", 10, false), 9), 0},
	} {
		for _, e := range w.Look([]Lock{c.lock}, at(2*i)) {
			if e.Lock != nil && e.Event != Ended && e.Lock.Lost != c.lost {
				t.Errorf("look %d, %s: lost %d, want %d", i, e.Event, e.Lock.Lost, c.lost)
			}
		}
	}
}

package timeline

import (
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
)

var start = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return start.Add(time.Duration(seconds * float64(time.Second)))
}

// seeing is a watch that tests tell what it sees.
type seeing struct {
	*record.Watch
	events []record.Event
}

func watching(table string, every time.Duration) *seeing {
	return &seeing{Watch: record.NewWatch(table, every)}
}

func (s *seeing) look(seconds float64, locks ...record.Lock) {
	s.events = append(s.events, s.Look(locks, at(seconds))...)
}

func (s *seeing) stop() []record.Event {
	return append(s.events, s.Stop()...)
}

// held is a lock that has no end.
func held(name, holder string, token int64) record.Lock {
	since := start
	return record.Lock{Name: name, Holder: holder, Token: token, Mode: "fail-closed", Since: &since}
}

// leased is a lock until a time, looked at at another.
func leased(l record.Lock, until, now float64) record.Lock {
	end := at(until)
	l.Mode, l.Until, l.Expired = "fail-open", &end, end.Before(at(now))
	return l
}

// lost says that the hold of a token before was ended by somebody else.
func lost(l record.Lock, token int64) record.Lock {
	l.NoneLostAbove = token
	return l
}

// tell is what a timeline says of each hold, for people.
func tell(t Timeline) (all []string) {
	for _, r := range t.Rows() {
		all = append(all, fmt.Sprint(r[0], "|", r[1], "|", r[2], "|", r[5], "|", r[6]))
	}
	return all
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// night is a night on which everything happens, over many locks.
func night(locks int) Timeline {
	w := watching("orders", 2*time.Second)
	for s := 0.0; s <= 600; s += 2 {
		if s > 300 && s < 360 {
			w.Failed()
			continue
		}
		var all []record.Lock
		for i := range locks {
			name := fmt.Sprintf("order-%04d", i)
			turn := int(s)/(20+i%37) + i
			l := leased(held(name, fmt.Sprintf("till-%d", turn%5), int64(1000*i+turn+1)), s+25, s)
			switch {
			case i == 3 && s >= 100 && s < 200: // its holder is dead
				l = leased(held(name, "till-dead", 9), 130, s)
			case i == 3 && s >= 200:
				l = lost(l, 9)
			case i == 5 && s >= 50 && s < 90:
				l = held(name, "batch-2", 7)
			case i == 5 && s >= 90:
				l = lost(l, 7)
			case turn%3 == 0:
				continue
			}
			all = append(all, l)
		}
		w.look(s, all...)
	}
	return Build(w.stop())
}

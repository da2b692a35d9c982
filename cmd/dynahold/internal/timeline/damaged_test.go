package timeline

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
)

// A lock that is handed over (Fair) has a holder by name from its confirmation on. That is
// one hold: nobody has given it back.
func TestAHandedLockIsOneHold(t *testing.T) {
	handed := held("a", "next", 2)
	handed.Handed = true
	w := watching("orders", 2*time.Second)
	w.look(0, held("a", "x", 1))
	w.look(2, lost(handed, 0))
	w.look(4, held("a", "y", 2))
	w.look(6)
	same(t, tell(Build(w.stop())), []string{"a|x|1|seen once|given back or broken", "a|y|2|2s to 6s|given back or broken"})

	w = watching("orders", 2*time.Second)
	w.look(0, handed)
	got := Build(w.stop())
	same(t, tell(got), []string{"a|one from the queue, to whom it was handed over|2|seen once|held at the last look"})
	var page bytes.Buffer
	if err := got.HTML(&page, "v1"); err != nil || !strings.Contains(page.String(), "one from the queue") || strings.Contains(page.String(), ">next<") {
		t.Errorf("%v: %s", err, &page)
	}
}

// Of watches at the same time each knows what the other does not: the one when a hold
// began, the other when it was gone.
func TestWatchesAtTheSameTime(t *testing.T) {
	long, short := watching("orders", 8*time.Second), watching("orders", time.Second)
	short.look(5, held("a", "x", 1))
	short.look(10, held("a", "x", 1))
	long.look(3)
	long.look(8, held("a", "x", 1))
	long.look(20)
	early, late := watching("orders", time.Second), watching("orders", time.Second)
	early.look(0)
	early.look(5, held("a", "x", 1))
	early.look(10, held("a", "x", 1))
	late.look(1)
	late.look(3)
	late.look(8, held("a", "x", 1))
	late.look(20)
	for name, got := range map[string]Timeline{"long": Build(long.stop(), short.stop()), "short": Build(short.stop(), long.stop()), "early": Build(early.stop(), late.stop())} {
		h := got.Locks[0].Holds[0]
		if h.Absent == nil || !h.Absent.Equal(at(3)) || !h.First.Equal(at(5)) || !h.Last.Equal(at(10)) || h.Gone == nil || !h.Gone.Equal(at(20)) || h.End != Ended {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// What is left of a record whose beginning is missing is told as far as it goes: a hold
// that has ended was there at the look before, and so was one whose lease ends.
func TestARecordWithoutItsBeginning(t *testing.T) {
	w := watching("orders", 2*time.Second)
	w.look(0, held("a", "x", 1), leased(held("b", "y", 1), 3, 0))
	w.look(4, leased(held("b", "y", 1), 3, 4))
	w.look(6, leased(held("b", "y", 1), 3, 6))
	var cut []record.Event
	for _, e := range w.stop() {
		if e.Event != record.Watching && e.Event != record.Held {
			cut = append(cut, e)
		}
	}
	got := Build(cut)
	same(t, tell(got), []string{"a|x|1|seen once|given back or broken", "b|y|1|6s or more|held at the last look, its lease over"})
	a, b := got.Locks[0].Holds[0], got.Locks[1].Holds[0]
	if a.Absent != nil || !a.Last.Equal(at(0)) || !a.Gone.Equal(at(4)) || b.Absent != nil || !b.First.Equal(at(0)) || !got.From.Equal(at(0)) {
		t.Errorf("%v: %+v, %+v", got.From, a, b)
	}
}

// A clock that is set back makes no hold of negative length.
func TestAClockThatIsSetBack(t *testing.T) {
	w := watching("orders", 2*time.Second)
	w.look(100)
	w.look(102, held("a", "x", 1))
	w.look(50, held("a", "x", 1))
	w.look(52)
	got := Build(w.stop())
	if h := got.Locks[0].Holds[0]; h.AtLeast() < 0 || h.Gone == nil || h.Gone.Before(h.Last) || got.To.Before(got.From) {
		t.Errorf("%+v", h)
	}
	if text := strings.Join(tell(got), "\n"); strings.Contains(text, "-") {
		t.Error(text)
	}
}

package pace_test

import (
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/pace"
)

const (
	ms   = time.Millisecond
	trip = 4 * ms
	turn = 10 * ms
)

var spacing = pace.Spacing{Share: 4, Least: ms / 2, Limit: 300 * ms}

// inLine is the forecast of one who has entered a line with so many turns before its
// own, and knows how long they take.
func inLine(ahead int) (f pace.Forecast, entered time.Time) {
	f.Turn, f.Trip = turn, trip
	entered = time.Now()
	f.See(ahead, entered, entered.Add(trip))
	return f, entered
}

// Looks begin when the turn is about to come: the first sees the item more than half a
// turn before, and nobody looks for all the time.
func TestForecastBegins(t *testing.T) {
	f, entered := inLine(2)
	due := entered.Add(trip / 2).Add(turn * 3 / 2) // the present turn was half over when the line was entered
	if sees := due.Sub(f.Next(entered, spacing).Add(trip / 2)); sees <= turn/2 || sees >= turn*5/4 {
		t.Errorf("the first look sees the item %v before the turn; a turn takes %v", sees, turn)
	}
}

// Looks around the turn follow each other by a share of a trip: several are under way
// at once.
func TestForecastOfWhoIsNext(t *testing.T) {
	f, entered := inLine(1)
	looks, first := 0, f.Next(entered, spacing)
	at := first
	for ; at.Before(first.Add(trip)); at = f.Next(at, spacing) {
		looks++
	}
	if looks != spacing.Share {
		t.Errorf("%d looks in the time of one, want %d", looks, spacing.Share)
	}
}

// What the partition gives bounds them, and so does what others must see of us.
func TestForecastIsBounded(t *testing.T) {
	f, entered := inLine(1)
	if gap := f.Next(entered.Add(turn), pace.Spacing{Share: 4, Least: 3 * ms, Limit: spacing.Limit}).Sub(entered.Add(turn)); gap != 3*ms {
		t.Errorf("%v, want the least", gap)
	}
	f, entered = inLine(1000)
	if d := f.Next(entered, spacing).Sub(entered); d != spacing.Limit {
		t.Errorf("%v, want the limit", d)
	}
	// A turn that takes a hundred times as long costs no more than some looks for each
	// doubling of its time.
	f, entered = inLine(1)
	looks := 0
	for at := f.Next(entered, spacing); at.Before(entered.Add(100 * turn)); at = f.Next(at, spacing) {
		looks++
	}
	if looks > 60 {
		t.Errorf("%d looks at one turn", looks)
	}
}

// Those further back look seldom, one look after the other, and the oftener the nearer
// they come; all of them in time, though the turns become a fifth shorter.
func TestForecastFurtherBack(t *testing.T) {
	const ahead, shorter = 31, turn * 4 / 5
	f, entered := inLine(ahead)
	looks, at := 0, entered
	for f.Next(at, spacing).Before(entered.Add((ahead-2)*shorter)) && looks < 100 {
		at = f.Next(at, spacing)
		looks++
		f.See(ahead-int(at.Add(trip/2).Sub(entered)/shorter), at, at.Add(trip))
	}
	if looks < 1 || looks > 8 {
		t.Errorf("%d looks while others were before it", looks)
	}
	if next := f.Next(at, spacing); next.After(entered.Add((ahead - 1) * shorter)) {
		t.Errorf("it looks %v after it was next", next.Sub(entered.Add((ahead-1)*shorter)))
	}
}

// The estimate falls fast and rises slowly: whoever looks too late makes the line slow.
func TestForecastLearns(t *testing.T) {
	after := func(turns int, took time.Duration) time.Duration {
		f, entered := inLine(turns + 1)
		at := entered.Add(time.Duration(turns) * took)
		f.See(1, at, at.Add(trip))
		return f.Turn
	}
	if got := after(20, turn/2); got > turn*6/10 {
		t.Errorf("after 20 turns of %v it expects %v", turn/2, got)
	}
	fall, rise := turn-after(1, turn/2), after(1, turn*3/2)-turn
	if fall <= 0 || rise <= 0 || fall < rise*3/2 {
		t.Errorf("one turn that is half as long lowers it by %v, one that is half as long again raises it by %v", fall, rise)
	}
	var f pace.Forecast
	f.Took(trip)
	f.Took(100 * trip)
	if f.Trip > trip*5/4 {
		t.Errorf("a trip of %v makes the next one %v", 100*trip, f.Trip)
	}
	// Nothing is known of turns: they are at least a trip.
	now := time.Now()
	f = pace.Forecast{}
	f.Took(trip)
	f.See(11, now, now.Add(trip))
	if d := f.Next(now, spacing).Sub(now); d < 2*trip || d > 10*trip {
		t.Errorf("the first look after %v", d)
	}
}

// One turn that has taken very long says little of the next.
func TestForecastForgetsAStall(t *testing.T) {
	f, entered := inLine(2)
	at := entered.Add(100 * turn)
	f.See(1, at, at.Add(trip))
	if f.Turn > turn*5/4 {
		t.Errorf("a turn of %v makes the next one %v", 100*turn, f.Turn)
	}
}

// Whoever looks for the first time when its turn has come already learns from that, too:
// a line in which all look too late would stay as slow as that.
func TestForecastLearnsFromItsOwnTurn(t *testing.T) {
	const ahead = 24
	late := func(expected time.Duration) (after time.Duration) {
		f := pace.Forecast{Learned: pace.Learned{Turn: expected, Trip: trip}}
		entered := time.Now()
		f.See(ahead, entered, entered.Add(trip))
		at := f.Next(entered, spacing)
		if at.Before(entered.Add(ahead * turn)) {
			return f.Turn
		}
		f.Came(at, at.Add(trip))
		return f.Turn
	}
	expected, rounds := 10*turn, 0
	for next := late(expected); next < expected; next = late(expected) {
		expected, rounds = next, rounds+1
	}
	if expected > turn*3/2 || rounds > 12 {
		t.Errorf("after %d turns it expects %v, they take %v", rounds, expected, turn)
	}
	f, entered := inLine(1)
	if f.Came(entered.Add(100*turn), entered.Add(100*turn+trip)); f.Turn != turn {
		t.Errorf("one that waited for us makes the next one %v", f.Turn)
	}
}

// Turns that all take much longer than was believed are soon believed.
func TestForecastBelievesLongTurnsThatFollowEachOther(t *testing.T) {
	const real, few = 50 * turn, 24
	f, at := inLine(few)
	for ahead := few - 1; ahead > 0; ahead-- {
		at = at.Add(real)
		f.See(ahead, at, at.Add(trip))
	}
	if f.Turn < real/2 {
		t.Errorf("after %d turns of %v the next one is taken to last %v", few, real, f.Turn)
	}
}

// Where looks take now long and now short, the first look comes sooner; where latency is
// even it costs nothing.
func TestForecastOfUnevenLatency(t *testing.T) {
	first := func(off time.Duration) time.Duration {
		f := pace.Forecast{Learned: pace.Learned{Turn: turn, Trip: trip, Off: off}}
		entered := time.Now()
		f.See(11, entered, entered.Add(trip))
		return f.Next(entered, spacing).Sub(entered)
	}
	if even, slightly := first(0), first(trip*3/10); even != slightly {
		t.Errorf("even latency: the first look after %v and %v", even, slightly)
	}
	if even, uneven := first(0), first(trip*3/5); uneven > even*3/5 || uneven < 2*turn {
		t.Errorf("uneven latency: the first look after %v, not %v", uneven, even)
	}
	var f pace.Forecast
	for i := range 200 {
		f.Took(trip/2 + trip*time.Duration(i%2)) // half a trip off
	}
	if f.Off < trip*4/10 || f.Off > trip*6/10 {
		t.Errorf("looks are off by %v", f.Off)
	}
}

// The first request may have been slow by chance: those after it tell soon.
func TestForecastForgetsASlowBeginning(t *testing.T) {
	var f pace.Forecast
	f.Took(5 * trip)
	for range 6 {
		f.Took(trip)
	}
	if f.Trip > trip*2 {
		t.Errorf("after six looks of %v it expects %v", trip, f.Trip)
	}
}

// A turn that stalled, one that was noticed late for it, and all that passed together in
// that time, make those after them hardly longer.
func TestForecastBehindAStall(t *testing.T) {
	f, at := inLine(31)
	for _, c := range []struct {
		ahead int
		took  time.Duration
	}{{20, 50 * turn}, {18, 10 * turn}} {
		at = at.Add(c.took)
		f.See(c.ahead, at, at.Add(trip))
	}
	if f.Turn > turn*5/4 {
		t.Errorf("it expects turns of %v, they take %v", f.Turn, turn)
	}
}

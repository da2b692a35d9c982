package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// fake answers with results that it was given, and notes what was asked.
type fake struct {
	results  []load.Result
	asked    []load.Workload
	virtual  bool
	fails    error
	blocks   int // from this run on it takes until the context ends; 0: none
	progress []float64
	begun    []string
	ended    int
}

func (f *fake) Run(ctx context.Context, w load.Workload, c load.Contender, o load.Options) (load.Result, error) {
	if f.fails != nil {
		return load.Result{}, f.fails
	}
	o.Progress(0.5)
	if f.blocks > 0 && len(f.asked) >= f.blocks {
		<-ctx.Done()
		return load.Result{}, ctx.Err()
	}
	r := f.results[len(f.asked)]
	f.asked = append(f.asked, w)
	f.virtual = o.Virtual
	r.Contender, r.Workload = c.Name, w
	return r, nil
}

func (f *fake) Begin(mode string, _ int) { f.begun = append(f.begun, mode) }
func (f *fake) Advance(share float64)    { f.progress = append(f.progress, share) }
func (f *fake) End(load.Result, int)     { f.ended++ }

func TestMeasureSumsUpRounds(t *testing.T) {
	f := &fake{results: []load.Result{
		{Measured: time.Second, Changes: 100, Rate: 100, Requests: 2, Reads: 1, Writes: 1, WriteUnits: 1, ReadUnits: 1, P50: 10 * time.Millisecond, P99: time.Second, Jain: 1, Turns: 20},
		{Measured: time.Second, Changes: 100, Rate: 100, P99: time.Second, Turns: 20, Lost: 1, Error: "first"},
		{Measured: time.Second, Changes: 300, Rate: 300, Requests: 4, Reads: 1, Writes: 3, Wasted: 2, WriteUnits: 2, ReadUnits: 1, P50: 20 * time.Millisecond, P99: 3 * time.Second, Jain: 0.5, Turns: 40},
		{Measured: time.Second, Changes: 100, Rate: 100, Turns: 20, Failed: 2, Extra: 3, Error: "second"},
	}}
	s := hot
	s.Rounds = 2
	found, err := Measure(t.Context(), f, []load.Contender{{Name: "nolock"}, {Name: "pessimistic"}, {Name: "optimistic"}}, s, f)
	if err != nil {
		t.Fatal(err)
	}
	modes := found.Modes
	if len(found.Skipped) != 1 || found.Skipped[0].Name != "nolock" || found.Rounds != 2 {
		t.Errorf("%+v", found)
	}
	want := Mode{
		Name: "pessimistic", Rounds: 2, Changes: 400, Rate: 200, Requests: 3.5, Reads: 1, Writes: 2.5, Wasted: 1.5, WriteUnits: 1.75, ReadUnits: 1, Cost: 1.75*0.625 + 0.125,
		P50: 15 * time.Millisecond, P99: 2 * time.Second, Jain: 0.75, JainLeast: 0.5, Turns: 30, Measured: time.Second, PartitionMax: 1000 / 1.75,
		RateSpread: 1, CostSpread: 2 * 0.625 / (2*0.125 + 3*0.625), P99Spread: 1, JainSpread: 0.5 / 0.75,
	}
	if got := modes[0]; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if m := modes[1]; m.Lost != 1 || m.Failed != 2 || m.Extra != 3 || m.Error != "first" || m.P99 != time.Second {
		t.Errorf("%+v", m)
	}
	if !f.virtual || f.asked[0].Seed != 1 || f.asked[1].Seed != 1 || f.asked[2].Seed != 2 {
		t.Errorf("the modes of a round have the same latencies, rounds have others: %+v", f.asked)
	}
	if last := f.progress[len(f.progress)-1]; last != 1 || f.progress[0] != 0.125 || f.ended != 4 || len(f.begun) != 4 {
		t.Errorf("progress %v, begun %q, ended %d", f.progress, f.begun, f.ended)
	}
}

// A mode works again, for longer, until there is enough to judge it by; the other
// rounds are as long as that was.
func TestShortRunsAreRepeatedForLonger(t *testing.T) {
	second := func(seconds float64, changes int, turns float64) load.Result {
		return load.Result{Measured: time.Duration(seconds * float64(time.Second)), Changes: changes, Requests: 3, Turns: turns, P99: time.Millisecond, Jain: 0.5}
	}
	none := second(2, 0, 0)
	none.P99 = 0
	for _, c := range []struct {
		name    string
		results []load.Result
		spans   []float64
	}{
		{"turns", []load.Result{second(2, 400, 2), second(8, 1600, 12), second(16, 3200, 24), second(16, 3200, 24)}, []float64{2, 8, 16, 16}},
		{"changes", []load.Result{second(2, 50, 40), second(4.8, 120, 90), second(4.8, 120, 90)}, []float64{2, 4.8, 4.8}},
		{"nothing at all", []load.Result{none, second(8, 400, 40), second(8, 400, 40)}, []float64{2, 8, 8}},
		{"nobody has patience for more", []load.Result{second(59, 900, 1), second(59, 900, 1)}, []float64{2, 2}},
		{"too many requests", []load.Result{second(2, 6600, 1), second(2, 6600, 1)}, []float64{2, 2}},
		{"enough", []load.Result{second(2, 400, 20), second(2, 400, 20)}, []float64{2, 2}},
	} {
		f := &fake{results: c.results}
		s := hot
		s.Rounds = 2
		found, err := Measure(t.Context(), f, []load.Contender{{Name: "pessimistic"}}, s, f)
		if err != nil || found.Rounds != 2 || len(f.asked) != len(c.spans) {
			t.Errorf("%s: %+v, %v; %d runs", c.name, found, err, len(f.asked))
			continue
		}
		for i, want := range c.spans {
			if got := f.asked[i].Span.Seconds(); math.Abs(got-want) > 0.01 {
				t.Errorf("%s: run %d of %v s, want %v", c.name, i+1, got, want)
			}
		}
		last := c.results[len(c.results)-1]
		if found.Modes[0].Changes != 2*last.Changes || f.progress[len(f.progress)-1] != 1 {
			t.Errorf("%s: %+v; progress %v", c.name, found.Modes[0], f.progress)
		}
	}
}

// Where there is no time for longer runs, what was measured has to do.
func TestLongerRunsNeedTime(t *testing.T) {
	enough := load.Result{Measured: time.Second, Changes: 200, Requests: 2, Turns: 30, P99: time.Millisecond, Jain: 1}
	short := enough
	short.Turns = 2
	for _, c := range []struct {
		left   time.Duration
		second load.Result
		want   int
		span   time.Duration
	}{
		{-time.Second, enough, 0, 0},
		{-time.Second, short, 0, 0},
		{time.Hour, enough, 0, 0},
		{time.Hour, short, 1, 4 * time.Second},
		{80 * time.Second, short, 1, 2 * time.Second}, // half of the 84 s that it would take in three rounds
	} {
		s := hot
		m := &measurement{settings: s, end: time.Now().Add(c.left)}
		for _, r := range []load.Result{enough, c.second} {
			m.slots = append(m.slots, &slot{workload: s.workload(), results: []load.Result{r}, took: 7 * time.Second})
		}
		longer := m.stretch()
		if len(longer) != c.want {
			t.Errorf("%+v: %d runs", c, len(longer))
		} else if c.want > 0 && (longer[0] != m.slots[1] || longer[0].workload.Span.Round(time.Second/2) != c.span) {
			t.Errorf("%+v: %v", c, longer[0].workload.Span)
		}
	}
}

// Complete rounds are an answer; with none there is no one.
func TestTimeLimit(t *testing.T) {
	good := load.Result{Measured: time.Second, Changes: 200, Requests: 2, Turns: 30, P99: time.Millisecond, Jain: 1}
	modes := []load.Contender{{Name: "pessimistic"}, {Name: "optimistic"}}
	for blocks, rounds := range map[int]int{2: 1, 3: 1, 5: 2} {
		f := &fake{results: slices.Repeat([]load.Result{good}, 6), blocks: blocks}
		s := hot
		s.TimeLimit = 50 * time.Millisecond
		found, err := Measure(t.Context(), f, modes, s, f)
		if err != nil || found.Rounds != rounds || found.Modes[1].Changes != 200*rounds {
			t.Errorf("run %d takes too long: %+v, %v", blocks+1, found, err)
		}
		if text := strings.Join(NewReport(s, found).legend(), " "); !strings.Contains(text, fmt.Sprintf("was over after %d of 3 rounds", rounds)) {
			t.Error(text)
		}
	}
	f := &fake{results: []load.Result{good, good}, blocks: 1}
	s := hot
	s.TimeLimit = 50 * time.Millisecond
	if _, err := Measure(t.Context(), f, modes, s, f); !errors.Is(err, errTime) || !strings.Contains(err.Error(), "more than 50ms") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, &fake{results: []load.Result{good, good}, blocks: 1}, modes, hot, f); !errors.Is(err, context.Canceled) || errors.Is(err, errTime) {
		t.Errorf("%v", err)
	}
}

func TestMeasureEndsWithTheFirstError(t *testing.T) {
	f := &fake{fails: errors.New("no engine")}
	if _, err := Measure(t.Context(), f, []load.Contender{{Name: "pessimistic"}}, hot, f); !errors.Is(err, f.fails) {
		t.Errorf("%v", err)
	}
}

func TestPartitions(t *testing.T) {
	for _, c := range []struct {
		name        string
		items       int
		zipf        float64
		write, read float64
		want        float64
		// Of these, for the first item; counted only where the choice is skewed.
		hotWrite, hotRead float64
	}{
		{"one item of 1 KB", 1, 0, 1, 0, 1000, 0, 0},
		{"one item of 100 KB", 1, 0, 100, 25, 10, 0, 0},
		{"reads", 1, 0, 0.1, 30, 100, 0, 0},
		{"ten items alike", 10, 0, 1, 0, 10_000, 0.5, 0},
		{"two items, the first with most of the conflicts", 2, 1.1, 2, 2, 625, 1.6, 0.5},
		{"two items, the first read most of all", 2, 1.1, 2, 8, 500, 1.6, 6},
		{"no requests", 1, 0, 0, 0, math.Inf(1), 0, 0},
	} {
		got := partitionMax(load.Workload{Items: c.items, Zipf: c.zipf}, capacity{c.write, c.read}, capacity{c.hotWrite, c.hotRead})
		if math.Abs(got-c.want) > 1e-9*c.want && got != c.want {
			t.Errorf("%s: %v changes per second, want %v", c.name, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rate(1234567.8), "1,234,568"}, {rate(99.96), "100"}, {rate(9.996), "10.0"}, {rate(2.345), "2.35"}, {rate(math.Inf(1)), "any"},
		{figure(0), "0.00"}, {figure(12.34), "12.3"}, {figure(1234), "1,234"},
		{usd(0.0191), "$0.019"}, {usd(0), "$0.00"}, {usd(1.5), "$1.50"}, {usd(2500), "$2,500"},
		{latency(12500 * time.Microsecond), "12.5 ms"}, {latency(333 * time.Millisecond), "333 ms"}, {latency(1234 * time.Millisecond), "1.23 s"}, {latency(time.Minute), "60.0 s"},
		{times(38.7), "39 times"}, {times(2), "2.0 times"}, {times(0.5), "50 % of"}, {times(0.012), "1.2 % of"},
		{FormatTime(time.Minute), "1m"}, {FormatTime(time.Hour), "1h"}, {FormatTime(70 * time.Minute), "1h10m"}, {FormatTime(1500 * time.Millisecond), "1.5s"}, {FormatTime(0), "0s"},
		{FormatSize(100 << 10), "100KB"}, {FormatSize(1000), "1000B"},
		{enumerate([]string{"a", "b", "c"}), "a, b and c"}, {enumerate(nil), ""},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// Who is far behind the best one without fault is not measured again.
func TestFarBehind(t *testing.T) {
	slow := mode("pessimistic", tail(900*time.Millisecond)) // nine times
	for name, c := range map[string]struct {
		modes []Mode
		want  string
	}{
		"nine times":              {[]Mode{mode("optimistic"), slow}, "pessimistic"},
		"seven times":             {[]Mode{mode("optimistic"), mode("pessimistic", tail(700*time.Millisecond))}, ""},
		"in all three together":   {[]Mode{mode("optimistic"), mode("pessimistic", rated(90), costs(2.1), tail(210*time.Millisecond))}, "pessimistic"},
		"the best one is unfair":  {[]Mode{mode("optimistic", jain(0.7)), slow}, ""},
		"the best one has failed": {[]Mode{mode("optimistic", fails(1)), slow}, ""},
		"the best one loses":      {[]Mode{mode("optimistic", loses(1)), slow}, ""},
		"too little to tell":      {[]Mode{mode("optimistic"), mode("pessimistic", tail(0))}, ""},
		"unfair, and behind":      {[]Mode{mode("optimistic"), mode("pessimistic", rated(20), jain(0.5))}, "pessimistic"},
	} {
		if got := strings.Join(farBehind(hot, c.modes), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	fast := load.Result{Measured: time.Second, Changes: 200, Rate: 200, WriteUnits: 1, Turns: 30, P99: time.Millisecond, Jain: 1}
	behind := fast
	behind.P99, behind.Turns = time.Second, 2 // which would be too short a run
	f := &fake{results: []load.Result{fast, behind, fast, fast}}
	found, err := Measure(t.Context(), f, []load.Contender{{Name: "optimistic"}, {Name: "pessimistic"}}, hot, f)
	if err != nil || len(f.asked) != 4 || found.Modes[0].Rounds != 3 || found.Modes[1].Rounds != 1 || f.progress[len(f.progress)-1] != 1 {
		t.Errorf("%d runs, %+v, %v, progress %v", len(f.asked), found, err, f.progress)
	}
	if text := strings.Join(NewReport(hot, found).legend(), " "); !strings.Contains(text, `one round only, being at least 8 times behind the best in rate, cost and p99 together: "pessimistic".`) {
		t.Error(text)
	}
}

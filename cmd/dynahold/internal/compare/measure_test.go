package compare

import (
	"context"
	"errors"
	"math"
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
	progress []float64
	begun    []string
	ended    int
}

func (f *fake) Run(_ context.Context, w load.Workload, c load.Contender, o load.Options) (load.Result, error) {
	if f.fails != nil {
		return load.Result{}, f.fails
	}
	o.Progress(0.5)
	r := f.results[len(f.asked)]
	f.asked = append(f.asked, w)
	f.virtual = o.Virtual
	r.Contender, r.Workload = c.Name, w
	return r, nil
}

func (f *fake) Begin(mode string, _ int) { f.begun = append(f.begun, mode) }
func (f *fake) Advance(share float64)    { f.progress = append(f.progress, share) }
func (f *fake) End(load.Result)          { f.ended++ }

func TestMeasureSumsUpRounds(t *testing.T) {
	f := &fake{results: []load.Result{
		{Measured: time.Second, Changes: 100, Rate: 100, Requests: 2, WriteUnits: 1, ReadUnits: 1, P50: 10 * time.Millisecond, P99: time.Second, Jain: 1},
		{Measured: time.Second, Changes: 10, Rate: 10, Lost: 1, Error: "first"},
		{Measured: time.Second, Changes: 300, Rate: 300, Requests: 4, WriteUnits: 2, ReadUnits: 1, P50: 20 * time.Millisecond, P99: 3 * time.Second, Jain: 0.5},
		{Measured: time.Second, Changes: 10, Rate: 10, Failed: 2, Extra: 3, Error: "second"},
	}}
	s := hot
	s.Rounds = 2
	modes, err := Measure(t.Context(), f, []load.Contender{{Name: "pessimistic"}, {Name: "optimistic"}}, s, f)
	if err != nil {
		t.Fatal(err)
	}
	want := Mode{
		Name: "pessimistic", Changes: 400, Rate: 200, Requests: 3.5, WriteUnits: 1.75, ReadUnits: 1, Cost: 1.75*0.625 + 0.125,
		P50: 15 * time.Millisecond, P99: 2 * time.Second, Jain: 0.75, PartitionMax: 1000 / 1.75,
		RateSpread: 1, CostSpread: 2 * 0.625 / (2*0.125 + 3*0.625), P99Spread: 1,
	}
	if got := modes[0]; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if m := modes[1]; m.Lost != 1 || m.Failed != 2 || m.Extra != 3 || m.Error != "first" {
		t.Errorf("%+v", m)
	}
	if !f.virtual || f.asked[0].Seed != 1 || f.asked[1].Seed != 1 || f.asked[2].Seed != 2 {
		t.Errorf("the modes of a round have the same latencies, rounds have others: %+v", f.asked)
	}
	if last := f.progress[len(f.progress)-1]; last != 1 || f.progress[0] != 0.125 || f.ended != 4 || len(f.begun) != 4 {
		t.Errorf("progress %v, begun %q, ended %d", f.progress, f.begun, f.ended)
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
	}{
		{"one item of 1 KB", 1, 0, 1, 0, 1000},
		{"one item of 100 KB", 1, 0, 100, 25, 10},
		{"reads", 1, 0, 0.1, 30, 100},
		{"ten items alike", 10, 0, 1, 0, 10_000},
		{"two items, one of them twice as hot", 2, 1, 1, 0, 1500},
		{"no requests", 1, 0, 0, 0, math.Inf(1)},
	} {
		got := partitionMax(load.Workload{Items: c.items, Zipf: c.zipf}, c.write, c.read)
		if math.Abs(got-c.want) > 1e-9*c.want && got != c.want {
			t.Errorf("%s: %v changes per second, want %v", c.name, got, c.want)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{rate(1234567.8), "1,234,568"}, {rate(99.96), "100"}, {rate(9.996), "10.0"}, {rate(2.345), "2.35"}, {rate(math.Inf(1)), "any"},
		{units(0), "0.00"}, {units(12.34), "12.3"}, {units(1234), "1,234"},
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

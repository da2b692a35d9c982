package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/localdb"
)

// The quick run of everybody keeps the contenders from rotting; it says
// nothing about speed.
func TestEverybodyLosesNothing(t *testing.T) {
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	for scenario, among := range kinds {
		for name, real := range map[string]bool{"virtual": false, "real": true} {
			if real && scenario != eightOf8 {
				continue // real time has nothing to add, and callers that wait for each other take it
			}
			t.Run(scenario+", "+name, func(t *testing.T) {
				h := load.New(t, engine)
				s := settings{scenarios: regexp.MustCompile("^" + scenario + "$"), contenders: regexp.MustCompile(""), real: real, worlds: worlds[1:2], seeds: 1, short: true, seed: 1}
				if real {
					s.worlds = worlds[:1]
				}
				results, err := measure(t.Context(), h, s, io.Discard)
				if err != nil {
					t.Fatal(err)
				}
				if err := verdict(results); err != nil {
					t.Error(err)
				}
				for _, r := range results {
					if r.Changes == 0 || r.Failed > r.Changes || r.Virtual == real {
						t.Errorf("%+v", r)
					}
				}
				checkReport(t, results, names(among()))
			})
		}
	}
}

// kinds are a scenario of each kind, with those who take part in it.
var kinds = map[string]func() []load.Contender{eightOf8: counting, orders: moving, messages: handlers, "ids, 100 a second": remembering, expressions: withoutRead, locks8: named}

func names(contenders []load.Contender) (names []string) {
	for _, c := range contenders {
		names = append(names, c.Name)
	}
	return names
}

// checkReport verifies that nobody was forgotten on the way to the reader.
func checkReport(t *testing.T, results []result, want []string) {
	t.Helper()
	page := tabulate(results).RenderMarkdown()
	for _, name := range want {
		if n := strings.Count(page, "| "+name+" |"); n != 1 {
			t.Errorf("the table has %d rows of %q", n, name)
		}
	}
	if rows := tabulate(results).Length(); rows != len(want) {
		t.Errorf("%d rows, %d contenders", rows, len(want))
	}
	folder := t.TempDir()
	if err := write(folder, report{Virtual: true, Short: true, Seed: 1, Results: results}); err != nil {
		t.Fatal(err)
	}
	var back report
	data, err := os.ReadFile(filepath.Join(folder, "results.json"))
	if err == nil {
		err = json.Unmarshal(data, &back)
	}
	if err != nil || len(back.Results) != len(want) || back.Results[0].Rate != results[0].Rate || back.Results[0].Scenario == "" {
		t.Errorf("%v: %+v", err, back)
	}
	if rows, err := os.ReadFile(filepath.Join(folder, "results.csv")); err != nil || !back.Short || !strings.Contains(string(rows), shortWarning) {
		t.Errorf("a short run looks like a real one: %v", err)
	}
	if rows, err := rowsOf(filepath.Join(folder, "results.csv"), "", ""); err != nil || len(rows) != len(want) || rows[0]["contender"] != want[0] {
		t.Errorf("%v: %v", err, rows)
	}
	svg, err := os.ReadFile(filepath.Join(folder, "results.svg"))
	if err != nil || xml.Unmarshal(svg, new(struct{})) != nil {
		t.Errorf("the chart is no XML: %v", err)
	}
	for _, name := range want {
		if !strings.Contains(string(svg), ">"+name+"<") {
			t.Errorf("the chart has no %q", name)
		}
	}
	if !strings.Contains(string(svg), "these are no results") {
		t.Error("the chart of a short run looks like a real one")
	}
}

func TestContendersHaveColoursOfTheirOwn(t *testing.T) {
	for _, among := range kinds {
		all, seen := names(among()), map[color.Color]string{}
		for i, c := range palette(all) {
			if other, is := seen[c]; is {
				t.Errorf("%q and %q have one colour", other, all[i])
			}
			seen[c] = all[i]
		}
	}
}

// The legend has a place of its own, in which it has room.
func TestTheLegendCoversNoBars(t *testing.T) {
	canvas := draw.New(vgsvg.New(800, chartHeight))
	plotted, beside := divide(canvas)
	if plotted.Max.X > beside.Min.X || beside.Max.X > canvas.Max.X {
		t.Errorf("bars up to %v, legend from %v to %v of %v", plotted.Max.X, beside.Min.X, beside.Max.X, canvas.Max.X)
	}
	l := newLegend()
	for _, name := range names(counting()) {
		l.Add(name, bars{color: color.Black})
	}
	needs := l.Rectangle(beside)
	if needs.Max.X > beside.Max.X || needs.Min.X < beside.Min.X || needs.Min.Y < beside.Min.Y {
		t.Errorf("the legend needs %v, has %v", needs, beside.Rectangle)
	}
}

func TestVerdict(t *testing.T) {
	if err := verdict([]result{{}, {}}); err != nil {
		t.Error(err)
	}
	for _, r := range []load.Result{{Lost: 1}, {Extra: 1}, {Imbalance: -1}} {
		if err := verdict([]result{{}, {Result: r}}); !errors.Is(err, errWrong) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// Who watches is told all that is wrong, as whoever reads the table.
func TestProgressTellsWhatIsWrong(t *testing.T) {
	var out strings.Builder
	newProgress(&out, 1).end(result{Scenario: orders, Result: load.Result{Contender: articleName, Rate: 9, Extra: 2, Imbalance: -1}})
	if want := orders + ": " + articleName + ": 9.00 changes/s, lost: 0, 2 extra, balances -1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

func TestRatiosAreThoseOfTheScenario(t *testing.T) {
	results := []result{
		{Scenario: eightOf8, Result: load.Result{Contender: "other", Rate: 300}},
		{Scenario: eightOf8, Result: load.Result{Contender: articleName, Rate: 200}},
		{Scenario: orders, Result: load.Result{Contender: articleName, Rate: 900}},
	}
	compare(results)
	if results[0].Ratio != 1.5 || results[1].Ratio != 1 || results[2].Ratio != 0 {
		t.Errorf("%+v", results)
	}
	if results[0].Best != 1.5 || results[2].Best != 1 {
		t.Errorf("against the best peer: %+v", results)
	}
	both := []result{
		{Scenario: eightOf8 + withPartition, Result: load.Result{Contender: articleName, Rate: 50}},
		{Scenario: eightOf8 + withPartition, Result: load.Result{Contender: "version by hand", Rate: 100}},
		{Scenario: eightOf8, Result: load.Result{Contender: articleName, Rate: 200}},
		{Scenario: eightOf8 + withPartition, Result: load.Result{Contender: "optimistic", Rate: 300}},
	}
	if compare(both); both[3].Ratio != 6 || both[3].Best != 3 || both[2].Ratio != 1 {
		t.Errorf("with the limits of a partition: %+v", both)
	}
	if len(worlds[0].among(both)) != 1 || len(charted(worlds[1].among(both))) != 3 {
		t.Errorf("both worlds: %+v", both)
	}
	alone := results[:1]
	alone[0].Ratio = 0
	if compare(alone); alone[0].Ratio != 0 || ratio(alone[0].Ratio) != "" {
		t.Error("a ratio to nothing")
	}
}

// A chart of growth has a line for each contender and a mark for each step, in the world
// in which it was run; one of bars has nothing of it.
func TestGrowthHasChartsOfItsOwn(t *testing.T) {
	var results []result
	for _, s := range growing() {
		if s.in == inSize {
			results = append(results, result{Scenario: s.name + withPartition, Result: load.Result{Contender: articleName, Rate: 1 / float64(s.at), WriteUnits: float64(s.at)}})
		}
	}
	all, err := charts(report{Virtual: true, Results: results})
	if err != nil || len(all) != 1 || all[0].file != "growth-size-partition.svg" {
		t.Fatalf("%v, %d charts: %+v", err, len(all), all)
	}
	text := string(all[0].svg)
	for _, want := range []string{articleName, inSize.title, rates.title, writeUnits.title, "390"} {
		if !strings.Contains(text, ">"+want+"<") {
			t.Errorf("the chart has no %q", want)
		}
	}
	if n := strings.Count(text, "<circle") + strings.Count(text, "A3,3"); n < 2*len(results) {
		t.Errorf("%d marks of %d steps in two panes", n, len(results))
	}
	for i, r := range results {
		results[i].Spread = spread{Seeds: 3, RateLeast: r.Rate / 20, RateMost: r.Rate * 20}
	}
	if all, err = charts(report{Virtual: true, Results: results}); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(all[0].svg), "<path") - strings.Count(text, "<path"); n < len(results) {
		t.Errorf("%d more strokes for how far apart the seeds of %d steps are", n, len(results))
	}
	for _, g := range growths {
		if some, at := g.steps(results); (g == inSize) != (len(some) == len(results) && slices.IsSorted(at)) {
			t.Errorf("%s: %d steps at %v", g.file, len(some), at)
		}
	}
}

func TestScenariosHaveNamesOfTheirOwn(t *testing.T) {
	for short, of := range map[bool]int{false: len(growing()), true: len(growths)} {
		var names []string
		for _, s := range scenarios(short) {
			if slices.Contains(names, s.name) {
				t.Errorf("two scenarios are called %q", s.name)
			}
			names = append(names, s.name)
		}
		if len(names) != 51+of {
			t.Errorf("%d scenarios", len(names))
		}
	}
}

func TestArguments(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := parse([]string{"-scenario", "^alone", "-contender", "hand$", "-real", "-span", "3s", "-seed", "9", "-out", folder})
	if err != nil || !s.real || s.short || s.seed != 9 || s.out != folder || s.span.Seconds() != 3 {
		t.Errorf("%+v, %v", s, err)
	}
	if n := len(plan(s)); n != 3*2 {
		t.Errorf("%d runs of two contenders by hand, alone with three sizes", n)
	}
	for _, args := range [][]string{
		{"-scenario", "("}, {"-unknown"}, {"extra"}, {"-scenario", "nowhere"}, {"-contender", "nobody"},
		{"-span", "-3s"}, {"-span", "0"}, {"-span", "1ms"}, {"-out", filepath.Join(file, "folder")}, {"-real", "-world", "partition"}, {"-real", "-world", "even,pareto"}, {"-world", "flat"}, {"-world", ""}, {"-seeds", "0"},
	} {
		if _, err := parse(args); !errors.Is(err, errUsage) {
			t.Errorf("%v: %v", args, err)
		}
	}
	s, err = parse([]string{"-scenario", "^alone, 1 KB$", "-contender", "^article", "-world", "even,partition"})
	if runs := plan(s); err != nil || len(runs) != 2 || runs[0].workload.Partition || !runs[1].workload.Partition || runs[1].scenario != alone1KB+withPartition {
		t.Errorf("both worlds: %+v, %v", runs, err)
	}
	if _, err := parse([]string{"-h"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
}

func TestFigures(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.02345: "0.023", 1.234: "1.23", 23.45: "23.4", 7284.4: "7284"} {
		if got := figures(x); got != want {
			t.Errorf("%v is shown as %s, want %s", x, got, want)
		}
	}
}

// A world changes what lies around a workload and nothing else, and has a name and charts
// of its own.
func TestWorlds(t *testing.T) {
	s, err := parse([]string{"-scenario", "^32 processes$", "-contender", "^article", "-world", strings.Join(worldNames(), ","), "-seeds", "3", "-seed", "5"})
	runs := plan(s)
	if err != nil || len(runs) != 3*len(worlds) {
		t.Fatalf("%d runs: %v", len(runs), err)
	}
	var scenarios, endings []string
	var workloads []load.Workload
	for i, r := range runs {
		if want := uint64(5 + i%3); r.workload.Seed != want {
			t.Errorf("run %d has seed %d, want %d", i, r.workload.Seed, want)
		}
		if i%3 != 0 {
			continue
		}
		w := worldOf(r.scenario)
		if bare(r.scenario) != processes32 || slices.Contains(scenarios, r.scenario) || slices.Contains(endings, w.ending) {
			t.Errorf("%q of world %q: before it were %q with %q", r.scenario, w.name, scenarios, endings)
		}
		if slices.Contains(workloads, r.workload) {
			t.Errorf("%q is what another world is", r.scenario)
		}
		scenarios, endings, workloads = append(scenarios, r.scenario), append(endings, w.ending), append(workloads, r.workload)
	}
}

// What several seeds have shown is their median, with how far they are apart; nothing
// that went wrong in one of them is left out.
func TestSeedsAreMerged(t *testing.T) {
	of := []result{
		{Result: load.Result{Rate: 9, P99: 30, Lost: 1, Imbalance: 2}},
		{Result: load.Result{Rate: 7, P99: 10, Imbalance: -2}},
		{Result: load.Result{Rate: 8, P99: 50, Failed: 4}},
	}
	m := merge(of)
	if m.Rate != 8 || m.P99 != 30 || m.Lost != 1 || m.Imbalance != 4 || m.Failed != 4 {
		t.Errorf("%+v", m.Result)
	}
	if want := (spread{3, 7, 9, 10, 50}); m.Spread != want || m.Spread.rates() != "7.00 to 9.00" {
		t.Errorf("%+v, want %+v", m.Spread, want)
	}
	if alone := merge(of[:1]); alone.Rate != 9 || alone.Spread.rates() != "" {
		t.Errorf("%+v", alone)
	}
}

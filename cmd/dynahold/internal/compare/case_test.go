package compare

import (
	"math"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// hot is the workload of the cases: some processes, one item of 1 KB.
var hot = Settings{
	Workload: load.Workload{
		Processes: 4, Workers: 8, Items: 1, Size: 1024, Span: 2 * time.Second, Seed: 1,
		Latency: load.Latency{Median: 4 * time.Millisecond, P99: 10 * time.Millisecond},
	},
	Rounds: 3, Virtual: true, Prices: OnDemand, TimeLimit: 5 * time.Minute,
}

// mode is one without fault, that differs from others only where the case
// says.
func mode(name string, change ...func(*Mode)) Mode {
	m := Mode{
		Name: name, Rounds: 3, Changes: 1000, Rate: 200, Requests: 2, Writes: 1, WriteUnits: 1, ReadUnits: 0.5, Cost: 1,
		P50: 10 * time.Millisecond, P99: 100 * time.Millisecond, Jain: 1, JainLeast: 1, Turns: 50, Measured: 2 * time.Second, PartitionMax: math.Inf(1),
	}
	for _, c := range change {
		c(&m)
	}
	return m
}

// of is what Measure would have found.
func of(modes ...Mode) Measured { return Measured{Modes: modes, Rounds: 3} }

// findings of a hot workload, in one world or in both.
func findings(s Settings, worlds ...Measured) Findings {
	f := Findings{Tool: "v1.2.3"}
	names := s.InBothWorlds()
	for i, m := range worlds {
		if len(worlds) > 1 {
			s = names[i]
		}
		f.Worlds = append(f.Worlds, NewReport(s, m))
	}
	f.Verdict = Decide(f.Worlds)
	return f
}

func rated(r float64) func(*Mode)      { return func(m *Mode) { m.Rate = r } }
func costs(usd float64) func(*Mode)    { return func(m *Mode) { m.Cost = usd } }
func tail(d time.Duration) func(*Mode) { return func(m *Mode) { m.P99 = d } }
func jain(j float64) func(*Mode)       { return func(m *Mode) { m.Jain, m.JainLeast = j, j } }
func leastFair(j float64) func(*Mode)  { return func(m *Mode) { m.JainLeast = j } }
func loses(n int) func(*Mode)          { return func(m *Mode) { m.Lost = n } }
func doubles(n int) func(*Mode)        { return func(m *Mode) { m.Extra = n } }
func fails(n int) func(*Mode)          { return func(m *Mode) { m.Failed = n } }
func limit(r float64) func(*Mode)      { return func(m *Mode) { m.PartitionMax = r } }
func writes(n float64) func(*Mode)     { return func(m *Mode) { m.Writes, m.WriteUnits = n, n } }
func turns(n float64) func(*Mode)      { return func(m *Mode) { m.Turns = n } }
func spreads(s float64) func(*Mode) {
	return func(m *Mode) { m.RateSpread, m.CostSpread, m.P99Spread, m.JainSpread = s, s, s, s }
}

// measured is about what the modes do on a hot item: enough for outputs to
// have all their parts.
func measured() []Mode {
	return []Mode{
		mode("nolock", rated(208), costs(3.17), tail(1050*time.Millisecond), writes(4.5)),
		mode("optimistic", rated(245), costs(1.13), tail(878*time.Millisecond), jain(0.86), writes(1.7), spreads(0.04)),
		mode("optimistic, combine", rated(1356), costs(0.19), tail(333*time.Millisecond), jain(0.9), writes(0.28)),
		mode("optimistic, warm, combine", rated(1765), costs(0.11), tail(420*time.Millisecond), jain(0.25), writes(0.16)),
		mode("pessimistic, race", rated(201), costs(0.75), tail(701*time.Millisecond), jain(0.9), writes(1.2)),
		mode("pessimistic", rated(195), costs(0.91), tail(220*time.Millisecond), writes(1.2)),
		mode("pessimistic, combine", rated(1128), costs(0.19), tail(44300*time.Microsecond), writes(0.25)),
	}
}

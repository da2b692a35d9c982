package compare

import (
	"fmt"
	"strings"
)

// title says what was measured.
func (r Report) title() string {
	w := r.Settings.Workload
	parts := []string{
		fmt.Sprintf("%s with %s each", many(w.Processes, "process", "processes"), many(w.Workers, "worker", "workers")),
		fmt.Sprintf("%s of %s", many(w.Items, "item", "items"), FormatSize(w.Size)),
	}
	if w.Zipf > 0 {
		parts[1] += fmt.Sprintf(", zipf %s (the hottest gets %.0f %%)", plain(w.Zipf), 100*hottest(w.Items, w.Zipf))
	}
	if w.Work > 0 {
		parts = append(parts, "work "+FormatTime(w.Work))
	}
	if w.Pause > 0 {
		parts = append(parts, "pause "+FormatTime(w.Pause))
	}
	parts = append(parts, fmt.Sprintf("latency %s, p99 %s", FormatTime(w.Latency.Median), FormatTime(w.Latency.P99)))
	return strings.Join(parts, "; ")
}

func many(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(int64(n)) + " " + more
}

// runnerUp says when to take the runner-up, and how it stands to the choice.
func (r Report) runnerUp() string {
	best, _ := find(r.Modes, r.Advice.Choice)
	next, _ := find(r.Modes, r.Advice.RunnerUp)
	return "Take it if " + strings.Join(r.Advice.When, ", or if ") + ". Against the choice: " + against(next, best) + "."
}

// legend says how it was measured, and what the figures are.
func (r Report) legend() []string {
	s := r.Settings
	clock := "virtual time: the processor and the engine cost none"
	if !s.Virtual {
		clock = "real time, in which this machine takes part"
	}
	share := "processes"
	if s.Workload.Processes == 1 {
		share = "workers"
	}
	return []string{
		fmt.Sprintf("Measured on the embedded engine in %s of %s, in %s; seed %d.", many(s.Rounds, "round", "rounds"), FormatTime(s.Workload.Span), clock, s.Workload.Seed),
		fmt.Sprintf("Differences of less than %.0f %%, or less than the rounds are apart, count as noise.", 100*leastNoise),
		fmt.Sprintf("Prices assumed per million units: write $%s, read $%s (%s).", plain(s.Prices.Write), plain(s.Prices.Read), s.Prices.source()),
		fmt.Sprintf("Fairness is Jain's index between %s: 1 is even. #: by rate, cost and p99 together, twice the one counting like half the other; -: not in question, see below.", share),
	}
}

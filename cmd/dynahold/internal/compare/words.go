package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// title says what was measured.
func (r Report) title() string {
	w := r.Settings.Workload
	parts := []string{
		fmt.Sprintf("%s with %s each", count(w.Processes, "process"), count(w.Workers, "worker")),
		fmt.Sprintf("%s of %s", count(w.Items, "item"), FormatSize(w.Size)),
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
	if w.Latency.Pareto {
		parts = append(parts, "Pareto")
	}
	if w.Latency.Stall > 0 {
		parts = append(parts, fmt.Sprintf("one request in 1,000 stalls for %s", FormatTime(w.Latency.Stall)))
	}
	return strings.Join(parts, "; ")
}

// runnerUp says when to take the runner-up, and how it stands to the choice.
func (r Report) runnerUp() string {
	best, _ := find(r.Modes, r.Advice.Choice)
	next, found := find(r.Modes, r.Advice.RunnerUp)
	if !found {
		return ""
	}
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
	legend := []string{
		fmt.Sprintf("Measured on %s in %s of %s, in %s; seed %d.", s.engine(), count(r.Rounds, "round"), r.spans(), clock, s.Workload.Seed),
		fmt.Sprintf("A round of a mode is longer than --span (%s) where there were fewer than %d turns of each process or %d changes in it, and shorter after %s requests.",
			FormatTime(s.Workload.Span), enoughTurns, enoughChanges, thousands(budget)),
		fmt.Sprintf("Differences of less than %.0f %%, or less than the rounds are apart, count as noise. ~: the rounds are more than %.0f %% apart. –: nothing to tell it from.", 100*leastNoise, 100*mostNoise),
		fmt.Sprintf("Prices assumed per million units: write $%s, read $%s (%s).", plain(s.Prices.Write), plain(s.Prices.Read), s.Prices.source()),
		fmt.Sprintf("Fairness is Jain's index between %s: 1 is even. #: by rate, cost and p99 together, twice the one counting like half the other; -: not in question, see below.", share),
	}
	if r.limited() {
		legend = append(legend, "Limit: what the partition of the hottest item lets through. Rates above it, and the p50 and p99 measured at them, are those of an engine without such a limit.")
	}
	if once := r.once(); len(once) > 0 {
		legend = append(legend, fmt.Sprintf("Measured in one round only, being at least %d times behind the best in rate, cost and p99 together: %s.", farBehindAt, enumerate(quotedAll(once))))
	}
	if r.Rounds < s.Rounds {
		legend = append([]string{fmt.Sprintf("The time limit of %s was over after %d of %d rounds; what follows is of these.", FormatTime(s.TimeLimit), r.Rounds, s.Rounds)}, legend...)
	}
	return legend
}

// once are the modes that worked in fewer rounds than others.
func (r Report) once() (list []string) {
	for _, m := range r.Modes {
		if m.Rounds < r.Rounds && !slices.Contains(list, m.Name) {
			list = append(list, m.Name)
		}
	}
	return list
}

// engine is what was measured on.
func (s Settings) engine() string {
	if s.Endpoint == "" {
		return "the embedded engine"
	}
	return "the server at " + s.Endpoint
}

func roughly(d time.Duration) time.Duration {
	if d < 10*time.Second {
		return d.Round(time.Second / 10)
	}
	return d.Round(time.Second)
}

// spans are how long the rounds were, those of the mode with the shortest and of
// the one with the longest.
func (r Report) spans() string {
	var all []time.Duration
	for _, m := range r.Modes {
		all = append(all, roughly(m.Measured))
	}
	if len(all) == 0 {
		return FormatTime(r.Settings.Workload.Span)
	}
	least, most := slices.Min(all), slices.Max(all)
	if least == most {
		return FormatTime(most)
	}
	return FormatTime(least) + " to " + FormatTime(most)
}

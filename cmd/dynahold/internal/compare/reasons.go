package compare

import (
	"fmt"
	"math"
	"strings"
)

// reasons say in sentences why best is the choice, the weightiest first.
func reasons(s Settings, best Mode, even, modes []Mode, out map[string]string) []string {
	list := []string{correctness(modes)}
	if s.SideEffects {
		list = append(list, "A change has side effects, so only modes that run it once, under a lock, are in question.")
	}
	if best.Failed > 0 || unfair(s, best) != "" {
		list = append(list, "No mode is without fault here ("+faults(s, best)+"); of those that lose nothing it is the best.")
	}
	list = append(list, achieves(s, best))
	if plain, ok := yardstick(best, modes); ok {
		aside := ""
		if reason := out[plain.Name]; reason != "" {
			aside = " (" + reason + ")"
		}
		list = append(list, fmt.Sprintf("Against plain %s%s: %s.", quoted(plain.Name), aside, against(best, plain)))
	}
	list = append(list, means(s, best)...)
	if len(even) > 0 {
		list = append(list, evenly(even))
	}
	return list
}

// achieves leads with the limit where DynamoDB has one: then the measured rate is
// none that anybody gets.
func achieves(s Settings, m Mode) string {
	among := ""
	if unfair(s, m) != "" { // so are all, or it would be out
		among = " among the fairest"
	}
	if m.capped() {
		return fmt.Sprintf("One partition of DynamoDB lets %s make about %s changes per second at most%s: with that, the best of rate, cost and p99 together%s. The p99 of %s was measured at %s changes per second, without the limit; at the limit it is longer.",
			quoted(m.Name), rate(m.PartitionMax), s.priced(m), among, latency(m.P99), rate(m.Rate))
	}
	return fmt.Sprintf("%s makes %s changes per second%s, p99 %s: the best of the three together%s.", quoted(m.Name), rate(m.Rate), s.priced(m), latency(m.P99), among)
}

func correctness(modes []Mode) string {
	var bad []string
	for _, m := range modes {
		if reason := wrong(Settings{}, m); reason != "" {
			bad = append(bad, quoted(m.Name)+" "+reason)
		}
	}
	if len(bad) > 0 {
		return "Correctness comes first, and " + enumerate(bad) + ": out of the question at any rate. Please report this."
	}
	return "No mode lost a change, and none made one twice."
}

func faults(s Settings, m Mode) string {
	var all []string
	for _, r := range []rule{{out: gaveUp}, {out: unfair}} {
		if reason := r.out(s, m); reason != "" {
			all = append(all, reason)
		}
	}
	return "with " + quoted(m.Name) + ", " + strings.Join(all, ", and ")
}

// yardstick is the plain mode that the choice is held against: pessimistic,
// which is what to take when in doubt, or optimistic where that is the choice.
func yardstick(best Mode, modes []Mode) (Mode, bool) {
	name := pessimistic
	if best.Name == pessimistic {
		name = optimistic
	}
	m, ok := find(modes, name)
	return m, ok && tooFew(Settings{}, m) == ""
}

// against compares m with another mode in all three measures.
func against(m, other Mode) string {
	var parts []string
	for _, by := range []struct {
		measure
		name string
	}{{byRate, "rate"}, {byCost, "cost"}, {byTail, "p99"}} {
		switch {
		case by.name == "cost" && m.Cost == 0 && other.Cost == 0:
			continue // there are no prices
		case by.name == "cost" && m.Cost*other.Cost == 0:
			parts = append(parts, fmt.Sprintf("a cost of %s, not %s", usd(m.Cost), usd(other.Cost)))
			continue
		case by.name == "p99" && (m.capped() || other.capped()):
			by.name = "p99 without the limit"
		}
		parts = append(parts, by.compared(m, other, by.name))
	}
	return enumerate(parts)
}

// compared says how m stands to another mode. The same within noise is only
// then "the same" when it looks so, too.
func (by measure) compared(m, other Mode, name string) string {
	ratio := by.value(m) / by.value(other)
	switch {
	case !by.even(m, other):
		return times(ratio) + " the " + name
	case math.Abs(ratio-1) <= leastNoise:
		return "the same " + name
	}
	return "a " + name + " within noise (" + times(ratio) + ")"
}

// times reads well before "the rate".
func times(x float64) string {
	switch {
	case x >= 10:
		return fmt.Sprintf("%.0f times", x)
	case x >= 1.95:
		return fmt.Sprintf("%.1f times", x)
	case x < 0.095:
		return fmt.Sprintf("%.1f %% of", 100*x)
	}
	return fmt.Sprintf("%.0f %% of", 100*x)
}

// means says by what the choice gets there, one sentence for each setting, or
// for the strategy where there is none.
func means(s Settings, m Mode) (list []string) {
	if m.has(combine) {
		list = append(list, "Combining writes the changes of all callers of a process that wait for the item at once: "+perWrite(m)+".")
	}
	if m.has(warm) && m.ReadUnits < 0.1 {
		list = append(list, "Warm items save nearly all reads: a change starts from what this process has seen last, and the version guards the write.")
	}
	if m.queues() && s.Workload.Processes > 1 {
		list = append(list, "Processes wait in a queue on the item and take turns, so none starves.")
	}
	if len(list) > 0 {
		return list
	}
	if m.strategy() == optimistic && m.Writes < rareConflicts {
		return []string{"Changes seldom collide here, and then a read and one write is all that a change needs."}
	}
	if m.strategy() == pessimistic && s.Workload.Workers > 1 {
		return []string{"Callers of a process stand in line and hand on the lock, so that a change costs little more than one write."}
	}
	return nil
}

// rareConflicts is how many writes a change takes at most, failed ones
// included, for conflicts to count as rare.
const rareConflicts = 1.1

func perWrite(m Mode) string {
	if m.Writes <= 0 || m.Writes > 1 {
		return fmt.Sprintf("%s requests for a change", figure(m.Requests))
	}
	return fmt.Sprintf("%s requests for a change, one write for about %.0f", figure(m.Requests), 1/m.Writes)
}

func evenly(even []Mode) string {
	verb := "is"
	if len(even) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s within noise of it in rate, cost and tail; the choice has the fewest settings.", enumerate(quotedAll(names(even))), verb)
}

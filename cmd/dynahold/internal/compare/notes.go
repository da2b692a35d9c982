package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// largeItem is the size from which on writing an item twice costs more than
// reading it.
const largeItem = 10 << 10

// notes say what else to know: consequences of the choice, and when another
// mode is right for a reason that no figure shows.
func notes(s Settings, best Mode, ranked []Mode, measured Measured, out map[string]string, answered []need) []string {
	modes := measured.Modes
	var list []string
	if best.has(combine) {
		list = append(list, "Combining makes fewer events in the table's stream: states of the item between two changes of one write are never stored. --every-state compares without it.")
	}
	list = append(list, instead(s, best, ranked, answered)...)
	if s.SideEffects {
		list = append(list, "A lock keeps two changes apart, but a commit can still fail after the effect. Give the fencing token along, and let whatever is outside refuse smaller ones.")
	}
	if n := large(s, best, modes); n != "" {
		list = append(list, n)
	}
	if best.capped() {
		list = append(list, fmt.Sprintf("The embedded engine never throttles, so %s changes per second were measured. One partition of DynamoDB takes %s write units and %s read units a second; that is the limit, for the hottest item in a partition of its own and all others beside it. Modes are judged by it.",
			rate(best.Rate), thousands(partitionWriteUnits), thousands(partitionReadUnits)))
	}
	if n := unknownFairness(s, measured); n != "" {
		list = append(list, n)
	}
	if n := heavyQueue(s, ranked); n != "" {
		list = append(list, n)
	}
	if n := fasterButUnfair(s, best, modes, out); n != "" {
		list = append(list, n)
	}
	if !s.SideEffects {
		list = append(list, events(s))
	}
	if rest := excluded(measured, out); rest != "" {
		list = append(list, "Not in question: "+rest+".")
	}
	return list
}

// instead names a mode for each need that follows from the mode itself, and
// that neither the choice nor the runner-up answers.
func instead(s Settings, best Mode, ranked []Mode, answered []need) (list []string) {
	for _, n := range needs {
		if !n.property || slices.ContainsFunc(answered, func(a need) bool { return a.name == n.name }) {
			continue
		}
		for _, m := range ranked {
			if n.met(m, best) {
				list = append(list, fmt.Sprintf("If %s: %s, %s changes per second%s, p99 %s.",
					n.text(best, m), quoted(m.Name), rate(m.effectiveRate()), s.priced(m), m.tail()))
				break
			}
		}
	}
	return list
}

// large: the lock is in the item, so taking it writes the whole item.
func large(s Settings, best Mode, modes []Mode) string {
	size := s.Workload.Size
	if size <= largeItem {
		return ""
	}
	text := fmt.Sprintf("At %s the item is large: the lock is kept in the item, so taking it bills the whole item a second time", FormatSize(size))
	lock, hasLock := find(modes, pessimistic)
	version, hasVersion := find(modes, optimistic)
	if hasLock && hasVersion {
		text += fmt.Sprintf(" (%s write units for a change with plain %s, %s with plain %s)", figure(lock.WriteUnits), quoted(lock.Name), figure(version.WriteUnits), quoted(version.Name))
	}
	if best.strategy() == pessimistic {
		text += ". What is locked often is better kept in a small item beside the large one"
	}
	return text + "."
}

// fasterButUnfair mentions the fastest mode that was ruled out for its
// fairness alone: whether that matters depends on who waits.
func fasterButUnfair(s Settings, best Mode, modes []Mode, out map[string]string) string {
	var fastest Mode
	for _, m := range modes {
		if reason := unfair(s, m); reason != "" && m.fairnessKnown(s) && out[m.Name] == reason && byRate.better(m, best) && m.effectiveRate() > fastest.effectiveRate() {
			fastest = m
		}
	}
	if fastest.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s was faster, %s changes per second, but unfair (%.2f). Take it only if it does not matter whose changes are made; its percentiles do not show who starved.",
		quoted(fastest.Name), rate(fastest.effectiveRate()), fastest.Jain)
}

// events: the one case in which a request without a read is enough.
func events(s Settings) string {
	writeUnits := math.Ceil(float64(s.Workload.Size) / 1024)
	return fmt.Sprintf("If a change is an event that carries its own time and need not be computed from the item: nolock.Put is one write without a read%s.",
		strings.Replace(s.priced(Mode{Cost: s.Prices.of(writeUnits, 0)}), " for", ",", 1))
}

// unknownFairness names the modes that had too few turns for a verdict.
func unknownFairness(s Settings, measured Measured) string {
	var list []string
	fewest := math.Inf(1)
	for _, m := range measured.Modes {
		if m.Rounds == measured.Rounds && tooFew(s, m) == "" && !m.fairnessKnown(s) {
			list = append(list, quoted(m.Name))
			fewest = min(fewest, m.Turns)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf("How fair these are is open, for there were too few turns (%.1f of each of those who share, where %d tell): %s. A longer --time-limit, or fewer of those who share, may tell.",
		fewest, enoughTurns, enumerate(list))
}

// heavyQueue: who waits in a queue on the item is in the item, which is billed
// as a whole.
func heavyQueue(s Settings, ranked []Mode) string {
	var heaviest Mode
	most := math.Ceil(float64(s.Workload.Size)/1024) * (1 + leastNoise)
	for _, m := range ranked {
		if m.queues() && m.Writes > 0 && m.WriteUnits/m.Writes > most {
			heaviest, most = m, m.WriteUnits/m.Writes
		}
	}
	if heaviest.Name == "" {
		return ""
	}
	return fmt.Sprintf("A write of %s bills %s units, an item of %s bills %.0f: each process that waits has an entry of 5 bytes in the item, which makes it larger.",
		quoted(heaviest.Name), figure(most), FormatSize(s.Workload.Size), math.Ceil(float64(s.Workload.Size)/1024))
}

// excluded lists the modes that the rules have ruled out, before or after they
// were measured, those with the same reason together.
func excluded(measured Measured, out map[string]string) string {
	var order []string
	byReason := map[string][]string{}
	add := func(name, reason string) {
		if byReason[reason] == nil {
			order = append(order, reason)
		}
		byReason[reason] = append(byReason[reason], quoted(name))
	}
	for _, m := range measured.Skipped {
		add(m.Name, m.Reason+"; not measured without --all")
	}
	for _, m := range measured.Modes {
		if reason, is := out[m.Name]; is {
			add(m.Name, reason)
		}
	}
	for i, reason := range order {
		order[i] = enumerate(byReason[reason]) + " (" + reason + ")"
	}
	return strings.Join(order, "; ")
}

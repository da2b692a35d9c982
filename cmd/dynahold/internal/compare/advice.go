package compare

import (
	"fmt"
	"slices"
)

// Advice is what the figures say.
type Advice struct {
	Choice   string   // a mode; empty: there is none
	Code     string   // that makes the mode, in Go
	Reasons  []string // why it is the choice
	Even     []string // modes within noise of it, with more settings
	RunnerUp string   // empty: no other mode is better in anything
	When     []string // when to take that instead
	Notes    []string // what else to know

	Ranked []string          // all modes that are in question, the best first
	Out    map[string]string // why the others are not
}

// Advise judges the modes.
func Advise(s Settings, measured Measured) Advice {
	modes := measured.Modes
	left, out := judge(s, modes)
	ranked, even := rank(s, left)
	a := Advice{Ranked: names(ranked), Even: names(even), Out: out}
	if len(ranked) == 0 {
		a.Reasons = nobody(s, measured, out)
		return a
	}
	best := ranked[0]
	a.Choice, a.Code = best.Name, code(best)
	a.Reasons = reasons(s, best, even, modes, out)
	var answered []need
	if next, when, ok := runnerUp(best, ranked[1:]); ok {
		a.RunnerUp = next.Name
		for _, n := range when {
			a.When = append(a.When, n.text(best, next))
			answered = append(answered, n)
		}
	}
	a.Notes = notes(s, best, ranked, measured, out, answered)
	return a
}

// nobody says why there is no recommendation, and what to do about it.
func nobody(s Settings, measured Measured, out map[string]string) []string {
	list := []string{"No mode is left: " + excluded(measured, out) + "."}
	if slices.ContainsFunc(measured.Modes, func(m Mode) bool { return tooFew(s, m) != "" }) {
		list = append(list, fmt.Sprintf("A recommendation takes %d changes of a mode. With this workload the workers need about %s to make one each, one after the other: %s.",
			enoughChanges, FormatTime(roundUp(s.circle())), s.longer(len(measured.Modes))))
	}
	return list
}

// runnerUp is the best other mode that answers a need better than the choice
// does.
func runnerUp(best Mode, others []Mode) (next Mode, when []need, ok bool) {
	for _, m := range others {
		if when := needsMetBy(m, best); len(when) > 0 {
			return m, when, true
		}
	}
	return Mode{}, nil, false
}

func names(modes []Mode) []string {
	var list []string
	for _, m := range modes {
		list = append(list, m.Name)
	}
	return list
}

func find(modes []Mode, name string) (Mode, bool) {
	i := slices.IndexFunc(modes, func(m Mode) bool { return m.Name == name })
	if i < 0 {
		return Mode{}, false
	}
	return modes[i], true
}

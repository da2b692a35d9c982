package compare

import (
	"fmt"

	"github.com/dynahold/dynahold/internal/load"
)

// A rule says of a mode why it is out of the question, or nothing.
type rule struct {
	out func(Settings, Mode) string
	// lenient rules are set aside where they would leave nobody: the least bad
	// mode is still an answer. A mode that loses changes is none.
	lenient bool
	// known rules need no figures: the mode's name is enough.
	known bool
}

// rules in the order in which they are asked. Correctness comes first: no rate
// makes up for a lost change.
var rules = []rule{
	{out: wrong},
	{out: runsAgain, known: true},
	{out: skipsStates, known: true},
	{out: forEvents, known: true},
	{out: tooFew},
	{out: gaveUp, lenient: true},
	{out: unfair, lenient: true},
}

// inQuestion leaves out the contenders of which it is known before that they are
// not in question.
func (s Settings) inQuestion(all []load.Contender) (some []load.Contender, skipped []Skipped) {
	if s.All {
		return all, nil
	}
	for _, c := range all {
		reason := ""
		for _, r := range rules {
			if r.known && reason == "" {
				reason = r.out(s, Mode{Name: c.Name})
			}
		}
		if reason == "" {
			some = append(some, c)
		} else {
			skipped = append(skipped, Skipped{c.Name, reason})
		}
	}
	return some, skipped
}

func wrong(_ Settings, m Mode) string {
	switch {
	case m.Lost > 0:
		return "lost " + count(m.Lost, "change")
	case m.Extra > 0:
		return fmt.Sprintf("made %s that nobody was told of", count(m.Extra, "change"))
	}
	return ""
}

// tooFew: with fewer changes in all rounds a figure is an accident, and without
// one that began and ended there is no percentile.
func tooFew(_ Settings, m Mode) string {
	switch {
	case m.Changes == 0:
		return "made no change in the measured time"
	case m.Changes < enoughChanges:
		return fmt.Sprintf("made only %s in the measured time", count(m.Changes, "change"))
	case m.P99 == 0:
		return "began no change in the measured time"
	}
	return ""
}

func runsAgain(s Settings, m Mode) string {
	switch {
	case !s.SideEffects || m.once():
		return ""
	case m.has(combine):
		return "may run a change again, and it has side effects"
	}
	return "runs a change again after a conflict, and it has side effects"
}

func skipsStates(s Settings, m Mode) string {
	if s.EveryState && m.has(combine) {
		return "stores several changes as one state of the item"
	}
	return ""
}

// forEvents: Update of nolock loses nothing, but it has no advantage over a
// version. What nolock is made for, a write without a read, is no
// read-modify-write, and so not what is measured.
func forEvents(_ Settings, m Mode) string {
	if m.strategy() == nolock {
		return "made for events that carry their own time"
	}
	return ""
}

func gaveUp(_ Settings, m Mode) string {
	if m.Failed > 0 {
		return fmt.Sprintf("%s failed", count(m.Failed, "call"))
	}
	return ""
}

// evenShare is the fairness below which some get much less than others, in any round: a
// mode that is fair on average alone starves somebody now and then, and would be in or out
// by the seed. It must be asked before rate and tail: who starves hardly begins a change,
// and does not show in the percentiles.
const evenShare = 0.8

func unfair(s Settings, m Mode) string {
	switch {
	case m.JainLeast >= evenShare:
		return ""
	case !m.fairnessKnown(s):
		return "too few turns to tell whether it is fair"
	case m.Jain >= evenShare:
		return fmt.Sprintf("unfair in one of the rounds: %s got far less than others", who(s))
	}
	return fmt.Sprintf("unfair: %s got far less than others", who(s))
}

// fairnessKnown tells whether the shares are more than chance: everybody had
// some turns, or so much time that who had none was starved. Few turns make
// shares uneven, never even.
func (m Mode) fairnessKnown(s Settings) bool {
	return m.JainLeast >= evenShare || m.Turns >= enoughTurns/2 || m.Measured >= s.longest()
}

// who shares the changes: the harness compares processes, or the workers of a
// single one.
func who(s Settings) string {
	if s.Workload.Processes == 1 {
		return "some workers"
	}
	return "some processes"
}

// judge asks all rules: who is left, and why each other one is not.
func judge(s Settings, modes []Mode) (left []Mode, out map[string]string) {
	left, out = modes, map[string]string{}
	for _, r := range rules {
		var stay []Mode
		reasons := map[string]string{}
		for _, m := range left {
			if reason := r.out(s, m); reason != "" {
				reasons[m.Name] = reason
			} else {
				stay = append(stay, m)
			}
		}
		if r.lenient && len(stay) == 0 {
			continue
		}
		left = stay
		for name, reason := range reasons {
			out[name] = reason
		}
	}
	return left, out
}

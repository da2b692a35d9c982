package local

import (
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/search"
)

// The model of backing off: a process whose callers hand a lock on among themselves, and
// another one that tries again and again, of which it hears only when it finds it
// holding. The search walks through every order of their steps; what is decided is
// decided by streak.over and streak.standsBack.

// The lease of the model is so many ticks that a streak may last for two of them.
const leaseOfModel = 2 * streakOfLease * time.Second

// yieldsWorld is a state.
type yieldsWorld struct {
	holder int8 // nobody, own, other
	waits  int8 // callers of the own process
	known  bool // the own process has heard of the other one
	streak streak
	held   int8 // ticks of the streak
	knew   bool // when the streak began
	holds  int8 // of callers of the own process, in a row
	before bool // a streak has ended, and its successor has not taken the lock yet
	away   bool
	wants  bool // the other process
	passed int8 // whole streaks that it has waited for since it was known
}

// yieldsRules are the rules, each of which a mutant breaks.
type yieldsRules struct {
	uncounted, deaf, neverAway, alwaysAway, goesOn, endless, alone bool
}

const (
	nobody, own, other = 0, 1, 2

	tooLong   = "the lock stays in one process"
	noTurn    = "another process that is known to want the lock gets no turn"
	forNobody = "a process stands back for nobody"
	oneByOne  = "a lock that was just taken is not handed on"
)

func (r yieldsRules) next(w yieldsWorld, emit func(what string, to yieldsWorld, wrong string)) {
	x := w
	if w.waits < 2 {
		x.waits++
		emit("a caller comes", x, "")
	}
	if x = w; !w.wants {
		x.wants, x.passed = true, 0
		emit("the other process comes", x, "")
	}
	switch x = w; w.holder {
	case nobody:
		r.free(w, emit)
	case own:
		if w.held < 3 {
			x.held++
			emit("a tick", x, "")
		}
		r.done(w, emit)
	case other:
		x.known = w.known || w.waits > 0
		x.holder, x.wants, x.passed, x.before, x.away = nobody, false, 0, false, false
		emit("the other process is done", x, "")
	}
}

// free are the steps while nobody holds the lock.
func (r yieldsRules) free(w yieldsWorld, emit func(string, yieldsWorld, string)) {
	x := w
	if w.wants {
		x.holder = other
		emit("the other process takes the lock", x, "")
	}
	if w.away && !w.wants { // who wants it tries in that time
		x = w
		x.away = false
		emit("the process comes back", x, "")
	}
	if w.waits == 0 || w.away {
		return
	}
	x = w
	wrong := ""
	if w.before && w.wants && w.passed > 0 && w.knew {
		wrong = noTurn
	}
	x.waits, x.holder, x.before, x.held, x.holds = w.waits-1, own, false, 0, 1
	x.knew = w.known
	if x.streak = (streak{contended: w.known && !r.deaf}); r.goesOn {
		x.streak.handoffs = w.streak.handoffs
	}
	emit("a caller takes the lock", x, wrong)
}

// done is the end of a hold.
func (r yieldsRules) done(w yieldsWorld, emit func(string, yieldsWorld, string)) {
	held, contended := time.Duration(w.held)*time.Second, handoffsContended
	if r.endless {
		held = 0 // since the last handoff
	}
	if r.alone {
		contended = handoffsAlone
	}
	x, over := w, w.streak.over(held, leaseOfModel, contended)
	if !r.uncounted {
		x.streak = w.streak.handed()
	}
	if w.waits > 0 && !over {
		x.waits, x.holds = w.waits-1, w.holds+1
		limit := int8(handoffsAlone)
		if w.knew {
			limit = handoffsContended
		}
		wrong := ""
		if x.holds > limit+1 || w.held >= 3 {
			wrong = tooLong
		}
		emit("the lock is handed on", x, wrong)
		return
	}
	wrong := ""
	if w.waits > 0 && w.holds == 1 && w.held < 2 {
		wrong = oneByOne
	}
	x.holder, x.holds, x.before = nobody, 0, true
	if over && w.wants && w.knew {
		x.passed = min(w.passed+1, 2)
	}
	x.away = x.streak.standsBack(held, leaseOfModel) && !r.neverAway || r.alwaysAway
	if x.away && !w.knew {
		wrong = forNobody
	}
	x.held = 0
	emit("the lock is let go", x, wrong)
}

func searchYields(r yieldsRules) (states int, wrong string, trace []string) {
	f := search.All([]yieldsWorld{{}}, func(w *yieldsWorld, step search.Emit[yieldsWorld, string]) { r.next(*w, step) })
	return f.States, f.Wrong, f.Trace(func(s search.Step[yieldsWorld, string]) string { return s.Name })
}

func TestModelOfYields(t *testing.T) {
	states, wrong, trace := searchYields(yieldsRules{})
	if wrong != "" {
		t.Errorf("%s, after\n\t%s", wrong, strings.Join(trace, "\n\t"))
	}
	t.Logf("%d states", states)
	for name, m := range map[string]struct {
		yieldsRules
		want string
	}{
		"handoffs are not counted":                       {yieldsRules{uncounted: true}, tooLong},
		"as many handoffs as where nobody else wants it": {yieldsRules{alone: true}, tooLong},
		"a streak counts from the last handoff":          {yieldsRules{endless: true}, tooLong},
		"a process never stands back":                    {yieldsRules{neverAway: true}, noTurn},
		"a process stands back always":                   {yieldsRules{alwaysAway: true}, forNobody},
		"a streak goes on when the lock is taken anew":   {yieldsRules{goesOn: true}, oneByOne},
		"nobody hears of the other process":              {yieldsRules{deaf: true}, noTurn},
	} {
		states, wrong, trace := searchYields(m.yieldsRules)
		if wrong != m.want {
			t.Errorf("%s: found %q, want %q", name, wrong, m.want)
		}
		t.Logf("%s: found within %d states, %d steps: %s", name, states, len(trace), wrong)
	}
}

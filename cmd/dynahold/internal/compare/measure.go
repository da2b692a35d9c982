package compare

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// Runner measures one contender; the harness is one.
type Runner interface {
	Run(context.Context, load.Workload, load.Contender, load.Options) (load.Result, error)
}

// Progress is told what goes on. Its methods are called by one goroutine at a
// time.
type Progress interface {
	// Begin is called before each run of a mode.
	Begin(mode string, round int)
	// Advance is told the share of all work that is done, from 0 to 1. It can
	// fall: a mode may turn out to need a longer run.
	Advance(share float64)
	// End is called after each run of a mode.
	End(r load.Result, round int)
}

// Measured is what Measure has found.
type Measured struct {
	Modes   []Mode
	Skipped []Skipped
	Rounds  int // complete ones; fewer than wanted where the time was up
}

// Skipped is a mode that was not measured.
type Skipped struct {
	Name   string `json:"mode"`
	Reason string `json:"because"`
}

// errTime is the cause of the end of what the time limit cuts off.
var errTime = errors.New("the time limit is over")

// Measure lets the contenders work, one after the other, for some rounds. The
// modes come in the order of the contenders. Those that the settings rule out
// are skipped.
//
// In the first round a mode works until there is enough to judge it by, see
// stretch; the other rounds are as long as that one was for it. Who is far behind
// after its first run does not work again.
func Measure(ctx context.Context, h Runner, contenders []load.Contender, s Settings, p Progress) (Measured, error) {
	contenders, skipped := s.inQuestion(contenders)
	ctx, cancel := context.WithTimeoutCause(ctx, s.limit(), errTime)
	defer cancel()
	m := &measurement{runner: h, settings: s, progress: p, end: time.Now().Add(s.limit())}
	for _, c := range contenders {
		m.slots = append(m.slots, &slot{contender: c, workload: s.workload()})
	}
	err := m.first(ctx)
	if m.complete() {
		m.rounds = 1
	}
	for err == nil && m.rounds < s.Rounds {
		if err = m.each(ctx, m.running()); err == nil {
			m.rounds++
		}
	}
	late := errors.Is(context.Cause(ctx), errTime)
	switch {
	case late && m.rounds == 0:
		return Measured{}, fmt.Errorf("%w before each mode was measured once: give it more than %s, or measure less", errTime, FormatTime(s.TimeLimit))
	case err != nil && !late: // what was measured before the time was up is an answer
		return Measured{}, err
	}
	found := Measured{Skipped: skipped, Rounds: m.rounds}
	for _, l := range m.slots {
		found.Modes = append(found.Modes, sum(l.results[:min(m.rounds, len(l.results))], s))
	}
	return found, nil
}

// complete tells whether every mode has a result.
func (m *measurement) complete() bool {
	return !slices.ContainsFunc(m.slots, func(l *slot) bool { return len(l.results) == 0 })
}

// measurement is one call of Measure under way.
type measurement struct {
	runner   Runner
	settings Settings
	progress Progress
	end      time.Time // of the time that there is
	slots    []*slot
	rounds   int // complete ones
}

// slot is one mode's.
type slot struct {
	contender load.Contender
	workload  load.Workload
	results   []load.Result // of complete rounds, and of the one under way
	tooShort  bool          // the result of the first round is to be replaced
	behind    bool          // so far that it does not work again
	took      time.Duration // the last run, in real time
}

// first is the first round. Who has not shown enough works again, for longer.
func (m *measurement) first(ctx context.Context) error {
	if err := m.each(ctx, m.slots); err != nil {
		return err
	}
	var modes []Mode
	for _, l := range m.slots {
		modes = append(modes, sum(l.results, m.settings))
	}
	behind := farBehind(m.settings, modes)
	for _, l := range m.slots {
		l.behind = slices.Contains(behind, l.contender.Name)
	}
	for {
		longer := m.stretch()
		if len(longer) == 0 {
			return nil
		}
		if err := m.each(ctx, longer); err != nil {
			return err
		}
	}
}

// running are the slots that work again.
func (m *measurement) running() []*slot {
	return slices.DeleteFunc(slices.Clone(m.slots), func(l *slot) bool { return l.behind })
}

// stretch lengthens the runs that were too short, as far as the time allows for
// all rounds, and returns their slots.
func (m *measurement) stretch() (longer []*slot) {
	left := time.Until(m.end).Seconds() * timeForRuns
	var wanted float64 // seconds for what is to be lengthened
	factors := map[*slot]float64{}
	for _, l := range m.running() {
		r := l.results[0]
		if f := m.settings.stretch(l.workload, r); f > 1 {
			factors[l] = f
			wanted += f * l.took.Seconds() * float64(m.settings.Rounds)
		} else {
			left -= l.took.Seconds() * float64(m.settings.Rounds-1)
		}
	}
	for _, l := range m.running() {
		f, short := factors[l]
		if wanted > left {
			f *= left / wanted
		}
		if !short || f < leastStretch {
			continue
		}
		r := l.results[0]
		requests := r.Requests * float64(max(1, r.Changes))
		l.workload.Span = time.Duration(f * float64(r.Measured))
		l.workload.Budget = max(l.workload.Budget, int(f*requests))
		l.tooShort = true
		longer = append(longer, l)
	}
	return longer
}

const (
	// timeForRuns is the share of the time that is planned for: runs differ.
	timeForRuns = 0.7
	// leastStretch is the factor below which a longer run is not worth its time.
	leastStretch = 1.3
)

// each lets the slots work once.
func (m *measurement) each(ctx context.Context, slots []*slot) error {
	for _, l := range slots {
		w := l.workload
		w.Seed += uint64(m.rounds) // not negative
		m.progress.Begin(l.contender.Name, m.rounds+1)
		began := time.Now()
		r, err := m.runner.Run(ctx, w, l.contender, load.Options{
			Virtual:  m.settings.Virtual,
			Progress: func(share float64) { m.progress.Advance(m.done(l, share)) },
		})
		if err != nil {
			return err
		}
		l.took = time.Since(began)
		l.results, l.tooShort = append(l.results[:m.rounds], r), false
		m.progress.End(r, m.rounds+1)
		m.progress.Advance(m.done(nil, 0))
	}
	return nil
}

// done is the share of all work that is over. A run counts by its span.
func (m *measurement) done(now *slot, share float64) float64 {
	var done, all float64
	for _, l := range m.slots {
		rounds := m.settings.Rounds
		if l.behind {
			rounds = 1
		}
		runs := float64(len(l.results))
		if l.tooShort {
			runs--
		}
		if l == now {
			runs += share
		}
		span := l.workload.Span.Seconds()
		done += runs * span
		all += float64(rounds) * span
	}
	return done / all
}

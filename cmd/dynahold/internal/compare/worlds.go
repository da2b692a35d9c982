package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dynahold/dynahold/internal/load"
)

// The names of worlds; one that the user describes has none.
const (
	evenWorld   = "even"
	unevenWorld = "uneven"
	givenWorld  = "given" // in the JSON
)

// The 99th percentile of a request in each world, for 4 ms: 10 ms and 50 ms.
const (
	evenTail   = 2.5
	unevenTail = 12.5
)

// InBothWorlds are the settings for an even and an uneven world of the same median.
func (s Settings) InBothWorlds() []Settings {
	even, uneven := s, s
	even.World, uneven.World = evenWorld, unevenWorld
	median := float64(s.Workload.Latency.Median)
	even.Workload.Latency.P99 = time.Duration(evenTail * median)
	uneven.Workload.Latency.P99 = time.Duration(unevenTail * median)
	return []Settings{even, uneven}
}

// MeasureWorlds measures in all worlds: in virtual time at once, for each has a clock of its
// own; in real time they would disturb each other, and each has its share of the time limit.
func MeasureWorlds(ctx context.Context, h Runner, contenders []load.Contender, worlds []Settings, tool string, p Progress) (Findings, error) {
	found := Findings{Tool: tool, Worlds: make([]Report, len(worlds))}
	shown := &together{Progress: p, shares: make([]float64, len(worlds))}
	all, ctx := errgroup.WithContext(ctx)
	if !worlds[0].Virtual {
		all.SetLimit(1)
	}
	for i, s := range worlds {
		if !s.Virtual {
			s.share = s.TimeLimit / time.Duration(len(worlds))
		}
		all.Go(func() error {
			m, err := Measure(ctx, h, contenders, s, &inWorld{shown, s.World, i})
			if err == nil {
				found.Worlds[i] = NewReport(s, m)
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return Findings{}, err
	}
	found.Verdict = Decide(found.Worlds)
	return found, nil
}

// together is the progress of all worlds.
type together struct {
	Progress

	mu     sync.Mutex
	shares []float64 // guarded by mu: of each world's work, what is done
}

// inWorld is the progress of one of them.
type inWorld struct {
	*together
	name string
	i    int
}

func (p *inWorld) Begin(mode string, round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Progress.Begin(mode, round)
}

func (p *inWorld) Advance(share float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shares[p.i] = share
	p.Progress.Advance(mean(p.shares))
}

func (p *inWorld) End(r load.Result, round int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.name != "" {
		r.Contender = p.name + ": " + r.Contender
	}
	p.Progress.End(r, round)
}

// Verdict is the one setting to take, whichever of the worlds it is.
type Verdict struct {
	Mode string // empty: none is in question in all worlds
	Code string
	Same bool // the advice is the same in each world
}

// Decide finds the mode that each world advises, or has within noise of its choice: of
// several the one with the fewest settings, which needs no explanation. Where there is none
// it is the mode that is least behind in the world that suits it least: nobody knows
// beforehand how even the latency will be.
func Decide(worlds []Report) Verdict {
	var all []standing
	for _, m := range worlds[0].Modes {
		if st, in := standingOf(m, worlds); in {
			all = append(all, st)
		}
	}
	if advised := slices.DeleteFunc(slices.Clone(all), func(s standing) bool { return !s.advised }); len(advised) > 0 {
		all = advised
	}
	if len(all) == 0 {
		return Verdict{}
	}
	best := slices.MinFunc(all, func(a, b standing) int {
		if a.advised {
			if c := cmp.Compare(len(a.options()), len(b.options())); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.behind, b.behind)
	})
	return Verdict{Mode: best.Name, Code: code(best.Mode), Same: best.advised}
}

// standing is how a mode does in all worlds.
type standing struct {
	Mode
	behind  float64 // the choice of the world that suits it least, in score
	advised bool    // by each world, or within noise of its choice
}

// standingOf a mode; false: it is not in question in each world.
func standingOf(m Mode, worlds []Report) (st standing, in bool) {
	st = standing{Mode: m, advised: true}
	for _, r := range worlds {
		if r.rank(m.Name) == 0 {
			return st, false
		}
		here, _ := find(r.Modes, m.Name)
		choice, _ := find(r.Modes, r.Advice.Choice)
		st.behind = max(st.behind, score(choice)-score(here))
		st.advised = st.advised && (m.Name == choice.Name || slices.Contains(r.Advice.Even, m.Name))
	}
	return st, true
}

// Findings are the reports of one world or of two, and what follows from them.
type Findings struct {
	Worlds  []Report
	Verdict Verdict
	Tool    string // its version
}

// Wrong tells whether any mode lost or doubled a change in any world.
func (f Findings) Wrong() bool { return slices.ContainsFunc(f.Worlds, Report.Wrong) }

// Failing tells whether calls of the recommended mode failed.
func (f Findings) Failing() bool {
	return slices.ContainsFunc(f.Worlds, func(r Report) bool {
		m, _ := find(r.Modes, f.Verdict.Mode)
		return m.Failed > 0
	})
}

// advice says in sentences which setting is advised, and why.
func (f Findings) advice() []string {
	var all []string
	switch v := f.Verdict; {
	case v.Mode == "":
		all = append(all, "No mode is in question in both worlds.")
	case v.Same:
		all = append(all, "The advice is the same in both worlds.")
	default:
		all = append(all, fmt.Sprintf("The advice differs: %s. %s is safe in both: where it suits least, it is the least behind.",
			enumerate(f.choices()), quoted(v.Mode)))
	}
	for _, r := range f.Worlds {
		all = append(all, r.inItsWorld(f.Verdict.Mode)...)
	}
	return append(all, f.common(func(a Advice) []string { return a.Reasons })...)
}

// choices of each world.
func (f Findings) choices() (list []string) {
	for _, r := range f.Worlds {
		choice := "none"
		if r.Advice.Choice != "" {
			choice = quoted(r.Advice.Choice)
		}
		list = append(list, choice+" where latency is "+r.Settings.World)
	}
	return list
}

// inItsWorld says what the mode does in this world, and against what.
func (r Report) inItsWorld(name string) (list []string) {
	in := "Where latency is " + r.Settings.World
	m, found := find(r.Modes, name)
	if !found || m.P99 == 0 {
		return nil
	}
	other, isOther := find(r.Modes, r.Advice.Choice)
	if !isOther || other.Name == m.Name {
		other, isOther = yardstick(m, r.Modes)
	}
	text := fmt.Sprintf("%s: %s changes per second%s, p99 %s", in, rate(m.effectiveRate()), r.Settings.priced(m), m.tail())
	if isOther {
		text += fmt.Sprintf("; against %s %s", quoted(other.Name), against(m, other))
	}
	if m.Failed > 0 {
		text += "; " + count(m.Failed, "call") + " failed"
	}
	return []string{text + "."}
}

// common are the sentences that each world has alike.
func (f Findings) common(of func(Advice) []string) (list []string) {
	for _, s := range of(f.Worlds[0].Advice) {
		if !slices.ContainsFunc(f.Worlds[1:], func(r Report) bool { return !slices.Contains(of(r.Advice), s) }) {
			list = append(list, s)
		}
	}
	return list
}

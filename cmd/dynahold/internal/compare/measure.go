package compare

import (
	"context"

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
	// Advance is told the share of all work that is done, from 0 to 1.
	Advance(share float64)
	// End is called after each run of a mode.
	End(r load.Result)
}

// Measure lets the contenders work, one after the other, for some rounds. The
// modes come in the order of the contenders.
func Measure(ctx context.Context, h Runner, contenders []load.Contender, s Settings, p Progress) ([]Mode, error) {
	rounds := make([][]load.Result, len(contenders))
	runs := float64(s.Rounds * len(contenders))
	done := 0.0
	for round := range s.Rounds {
		for i, c := range contenders {
			p.Begin(c.Name, round+1)
			r, err := h.Run(ctx, s.workload(round), c, load.Options{
				Virtual:  s.Virtual,
				Progress: func(share float64) { p.Advance((done + share) / runs) },
			})
			if err != nil {
				return nil, err
			}
			p.End(r)
			done++
			p.Advance(done / runs)
			rounds[i] = append(rounds[i], r)
		}
	}
	modes := make([]Mode, len(contenders))
	for i := range rounds {
		modes[i] = sum(rounds[i], s.Prices)
	}
	return modes, nil
}

package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/internal/load"
)

// result is a contender's in one scenario.
type result struct {
	Scenario string
	Best     float64 // of the rate to that of the fastest of the others, who are not of this library; 0 where none was run
	Ratio    float64 // of the rate to that of the scenario's first contender; 0 where that was not run
	Spread   spread  // over the seeds
	load.Result
}

// run is a contender in a scenario.
type run struct {
	scenario  string
	workload  load.Workload
	contender load.Contender
}

// plan returns the selected runs: world by world, scenario by scenario, and each
// contender with one seed after the other.
func plan(s settings) (runs []run) {
	for _, world := range s.worlds {
		for _, sc := range scenarios(s.short) {
			if !s.scenarios.MatchString(sc.name) {
				continue
			}
			w := sc.workload
			if s.span > 0 {
				w.Span, w.Warmup, w.Enough, w.Budget, w.Turns = s.span, 0, 0, 0, 0
			}
			world.enter(&w)
			name := sc.name
			if len(s.worlds) > 1 {
				name += world.where
			}
			for _, c := range sc.among() {
				if !s.contenders.MatchString(c.Name) {
					continue
				}
				for n := range s.seeds {
					w.Seed = s.seed + uint64(n) // not negative
					runs = append(runs, run{name, w, c})
				}
			}
		}
	}
	return runs
}

// measure makes the selected runs. With an error it returns those that were
// made before.
func measure(ctx context.Context, h *load.Harness, s settings, log io.Writer) ([]result, error) {
	runs := plan(s)
	// In virtual time runs do not disturb each other; in real time they would.
	at := 1
	if !s.real {
		at = runtime.GOMAXPROCS(0)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := newProgress(log, len(runs))
	results := make([]result, len(runs))
	next := make(chan int)
	var all sync.WaitGroup
	for range at {
		all.Go(func() {
			for i := range next {
				r, err := h.Run(ctx, runs[i].workload, runs[i].contender, load.Options{Virtual: !s.real})
				if err != nil {
					cancel(fmt.Errorf("%s: %w", runs[i].scenario, err))
					continue
				}
				results[i] = result{Scenario: runs[i].scenario, Result: r}
				p.end(results[i])
			}
		})
	}
	for i := range runs {
		if ctx.Err() == nil {
			next <- i
		}
	}
	close(next)
	all.Wait()
	var merged []result
	for all := range slices.Chunk(results, s.seeds) {
		if !slices.ContainsFunc(all, func(r result) bool { return r.Contender == "" }) {
			merged = append(merged, merge(all))
		}
	}
	results = merged
	compare(results)
	return results, context.Cause(ctx)
}

// compare fills in the ratios to the first contender of the same scenario, and to the
// fastest of the peers.
func compare(results []result) {
	first, rates, best, others := map[string]string{}, map[string]float64{}, map[string]float64{}, peers()
	for _, sc := range scenarios(false) {
		first[sc.name] = sc.among()[0].Name
	}
	for _, r := range results {
		if r.Contender == first[bare(r.Scenario)] {
			rates[r.Scenario] = r.Rate
		}
		if slices.Contains(others, r.Contender) {
			best[r.Scenario] = max(best[r.Scenario], r.Rate)
		}
	}
	for i := range results {
		if rate := rates[results[i].Scenario]; rate > 0 {
			results[i].Ratio = results[i].Rate / rate
		}
		if rate := best[results[i].Scenario]; rate > 0 {
			results[i].Best = results[i].Rate / rate
		}
	}
}

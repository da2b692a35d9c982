package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/dynahold/dynahold/internal/load"
)

// result is a contender's in one scenario.
type result struct {
	Scenario string
	Ratio    float64 // of the rate to that of the article's pattern; 0 where that was not run
	load.Result
}

// measure runs every selected contender in every selected scenario.
func measure(ctx context.Context, h *load.Harness, s settings, log io.Writer) ([]result, error) {
	all := selected(scenarios(s.short), s.scenarios, func(s scenario) string { return s.name })
	runners := selected(contenders(), s.contenders, func(c load.Contender) string { return c.Name })
	if len(all) == 0 || len(runners) == 0 {
		return nil, errors.New("nothing matches: see scenarios.go and contenders.go for the names")
	}
	p := newProgress(log, len(all)*len(runners))
	var results []result
	for _, scenario := range all {
		w := scenario.workload
		w.Seed = s.seed
		if s.span > 0 {
			w.Span, w.Warmup, w.Enough, w.Budget = s.span, 0, 0, 0
		}
		first := len(results)
		for _, c := range runners {
			p.start(scenario.name, c.Name)
			r, err := h.Run(ctx, w, c, load.Options{Virtual: !s.real, Progress: p.share})
			if err != nil {
				return results, fmt.Errorf("%s: %w", scenario.name, err)
			}
			p.end(r)
			results = append(results, result{Scenario: scenario.name, Result: r})
		}
		compare(results[first:])
	}
	return results, nil
}

// compare fills in the ratios within one scenario.
func compare(results []result) {
	for _, base := range results {
		if base.Contender != articleName || base.Rate == 0 {
			continue
		}
		for i := range results {
			results[i].Ratio = results[i].Rate / base.Rate
		}
	}
}

package compare

import (
	"cmp"
	"math"
	"slices"
)

// rank orders modes, the best first, by their rate, cost and tail together:
// twice the rate counts as much as half the cost or half the 99th percentile.
// The rate is what DynamoDB lets through.
//
// Where all are unfair, for the rule was set aside, those that are as fair as the
// fairest go first: no rate makes up for being starved.
//
// Of the modes that are within noise of the best one in all three, the one with
// the fewest settings goes first: what is not switched on needs no explanation.
// Even are those of them that are within noise of that one, too.
func rank(s Settings, modes []Mode) (ranked, even []Mode) {
	if len(modes) == 0 {
		return nil, nil
	}
	ranked = slices.Clone(modes)
	slices.SortStableFunc(ranked, func(a, b Mode) int { return cmp.Compare(score(b), score(a)) })
	if !slices.ContainsFunc(modes, func(m Mode) bool { return unfair(s, m) == "" }) {
		fairest := slices.MaxFunc(modes, func(a, b Mode) int { return cmp.Compare(a.Jain, b.Jain) })
		behind := func(m Mode) int {
			if byFairness.better(fairest, m) {
				return 1
			}
			return 0
		}
		slices.SortStableFunc(ranked, func(a, b Mode) int { return cmp.Compare(behind(a), behind(b)) })
	}
	best := ranked[0]
	for _, m := range ranked {
		if same(best, m) && !byFairness.better(best, m) {
			even = append(even, m)
		}
	}
	simplest := slices.MinFunc(even, func(a, b Mode) int { return cmp.Compare(len(a.options()), len(b.options())) })
	even = slices.DeleteFunc(even, func(m Mode) bool { return m.Name == simplest.Name || !same(simplest, m) })
	i := slices.IndexFunc(ranked, func(m Mode) bool { return m.Name == simplest.Name })
	return slices.Insert(slices.Delete(ranked, i, i+1), 0, simplest), even
}

// score multiplies the three, by logarithms, so that only ratios count. A mode
// that is ranked has a rate and a tail. A tenth of a cent per million is as good
// as nothing, which prices of 0 make of any cost.
func score(m Mode) float64 {
	return math.Log(m.effectiveRate()) - math.Log(m.P99.Seconds()) - math.Log(max(m.Cost, 0.001))
}

// farBehindAt is twice as bad in rate, cost and tail alike: more than noise makes of them.
const farBehindAt = 2 * 2 * 2

// farBehind are the modes that no more rounds would bring near the best one without fault.
func farBehind(s Settings, modes []Mode) (list []string) {
	best := math.Inf(-1)
	for _, m := range modes {
		if !slices.ContainsFunc(rules, func(r rule) bool { return r.out(s, m) != "" }) {
			best = max(best, score(m))
		}
	}
	for _, m := range modes {
		if tooFew(s, m) == "" && score(m) < best-math.Log(farBehindAt) {
			list = append(list, m.Name)
		}
	}
	return list
}

// A measure is one of the figures by which modes are ranked.
type measure struct {
	value  func(Mode) float64
	spread func(Mode) float64
	less   bool // less is better
}

var (
	byRate = measure{value: Mode.effectiveRate, spread: func(m Mode) float64 { return m.RateSpread }}
	byCost = measure{value: func(m Mode) float64 { return m.Cost }, spread: func(m Mode) float64 { return m.CostSpread }, less: true}
	// Not ranked by, but judged.
	byFairness = measure{value: func(m Mode) float64 { return m.Jain }, spread: func(m Mode) float64 { return m.JainSpread }}
	byTail     = measure{value: func(m Mode) float64 { return m.P99.Seconds() }, spread: func(m Mode) float64 { return m.P99Spread }, less: true}
)

// What two modes may differ by at least before it means anything: latencies are
// drawn at random, and no workload is that exact. And at most: where a mode's
// own rounds are further apart, a mode that is better by so much is better all
// the same.
const (
	leastNoise = 0.05
	mostNoise  = 0.25
)

// noise is the share by which two modes may differ in a measure for no reason:
// the mean range of their rounds, within bounds.
func (by measure) noise(a, b Mode) float64 {
	return min(max(leastNoise, (by.spread(a)+by.spread(b))/2), mostNoise)
}

// better tells whether a is better than b by more than noise.
func (by measure) better(a, b Mode) bool {
	x, y := by.value(a), by.value(b)
	if by.less {
		x, y = y, x
	}
	return x > y && x-y > by.noise(a, b)*max(x, y)
}

func (by measure) even(a, b Mode) bool { return !by.better(a, b) && !by.better(b, a) }

func same(a, b Mode) bool { return byRate.even(a, b) && byCost.even(a, b) && byTail.even(a, b) }

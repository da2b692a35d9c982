package main

import (
	"cmp"
	"slices"
	"time"
)

// spread is how far apart the runs of several seeds are. Zero: there was one.
type spread struct {
	Seeds     int
	RateLeast float64
	RateMost  float64
	P99Least  time.Duration
	P99Most   time.Duration
}

// merge makes one result of those of several seeds: each figure is their median, and
// what went wrong is added up.
func merge(of []result) result {
	if len(of) == 1 {
		return of[0]
	}
	m := of[0]
	r := &m.Result
	r.Lost, r.Extra, r.Imbalance, r.Failed = 0, 0, 0, 0
	for _, one := range of {
		r.Lost, r.Extra, r.Failed = r.Lost+one.Lost, r.Extra+one.Extra, r.Failed+one.Failed
		r.Imbalance += max(one.Imbalance, -one.Imbalance)
	}
	r.Rate = median(of, func(r result) float64 { return r.Rate })
	r.Requests, r.Reads = median(of, func(r result) float64 { return r.Requests }), median(of, func(r result) float64 { return r.Reads })
	r.Writes, r.Wasted = median(of, func(r result) float64 { return r.Writes }), median(of, func(r result) float64 { return r.Wasted })
	r.WriteUnits = median(of, func(r result) float64 { return r.WriteUnits })
	r.ReadUnits = median(of, func(r result) float64 { return r.ReadUnits })
	r.HotWriteUnits = median(of, func(r result) float64 { return r.HotWriteUnits })
	r.HotReadUnits = median(of, func(r result) float64 { return r.HotReadUnits })
	r.P50, r.P99 = median(of, func(r result) time.Duration { return r.P50 }), median(of, func(r result) time.Duration { return r.P99 })
	r.Jain, r.Turns = median(of, func(r result) float64 { return r.Jain }), median(of, func(r result) float64 { return r.Turns })
	least, most := slices.MinFunc(of, byRate), slices.MaxFunc(of, byRate)
	shortest, longest := slices.MinFunc(of, byTail), slices.MaxFunc(of, byTail)
	m.Spread = spread{len(of), least.Rate, most.Rate, shortest.P99, longest.P99}
	return m
}

func byRate(a, b result) int { return cmp.Compare(a.Rate, b.Rate) }
func byTail(a, b result) int { return cmp.Compare(a.P99, b.P99) }

// median of a figure.
func median[T cmp.Ordered](of []result, figure func(result) T) T {
	var all []T
	for _, r := range of {
		all = append(all, figure(r))
	}
	_, middle, _ := sorted(all)
	return middle
}

// sorted sorts some values, and returns the least, the middle and the greatest of them; of
// an even number the lower one of the two in the middle.
func sorted[T cmp.Ordered](all []T) (least, middle, most T) {
	slices.Sort(all)
	return all[0], all[(len(all)-1)/2], all[len(all)-1]
}

// rates shows how far apart the rates are; empty: there was one seed.
func (s spread) rates() string {
	if s.Seeds == 0 {
		return ""
	}
	return figures(s.RateLeast) + " to " + figures(s.RateMost)
}

// tails does the same for the 99th percentiles.
func (s spread) tails() string {
	if s.Seeds == 0 {
		return ""
	}
	return milliseconds(s.P99Least) + " to " + milliseconds(s.P99Most)
}

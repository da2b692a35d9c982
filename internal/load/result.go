package load

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"
)

// result sums up the workers and compares what they were told with what is in
// the items.
func (c *crew) result(ctx context.Context, table *counters) (Result, error) {
	found, balance, err := table.read(ctx)
	if err != nil {
		return Result{}, err
	}
	r := Result{Contender: c.contender.Name, Workload: c.workload, Measured: c.window.measured(), Imbalance: balance}
	var took []time.Duration
	for _, w := range c.workers {
		r.Changes += w.measured
		r.Failed += w.failed
		took = append(took, w.took...)
		if r.Error == "" && w.err != nil {
			r.Error = w.err.Error()
		}
	}
	slices.Sort(took)
	r.P50, r.P99 = percentile(took, 0.50), percentile(took, 0.99)
	r.Jain, r.Turns = jain(c.shares()), c.turns()
	r.Rate = float64(r.Changes) / r.Measured.Seconds()
	r.Lost, r.Extra = c.compare(found)
	c.charge(&r)
	return r, nil
}

// compare counts, item by item, acknowledged changes that are missing and
// changes that nobody knows of.
func (c *crew) compare(found map[string]int) (lost, extra int) {
	if c.workload.Held {
		return int(c.overlaps.Load()), 0 // nothing was to be stored
	}
	found = maps.Clone(found) // what is left in the end, nobody knows of
	check := func(id string, acked, unknown int) {
		n := found[id]
		lost += max(0, acked-n)
		extra += max(0, n-acked-unknown)
		delete(found, id)
	}
	for item := range c.workload.Items {
		acked, unknown := 0, 0
		for _, w := range c.workers {
			acked += w.acked[item]
			unknown += w.unknown[item]
		}
		check(itemID(item), acked, unknown)
	}
	for _, w := range c.workers {
		for id, known := range w.made {
			if known {
				check(id, 1, 0)
			} else {
				check(id, 0, 1)
			}
		}
	}
	for _, n := range found {
		extra += n
	}
	return lost, extra
}

// charge divides requests and units by the changes. Without a change they
// stand as they are: a contender that did nothing but ask is no cheap one.
func (c *crew) charge(r *Result) {
	b := c.tally.sum()
	reads, writes := 0, 0
	for operation, n := range b.operations {
		if isRead(operation) {
			reads += n
		} else {
			writes += n
		}
	}
	per := float64(max(1, r.Changes))
	r.Operations = b.operations
	r.Requests, r.Reads, r.Writes = float64(reads+writes)/per, float64(reads)/per, float64(writes)/per
	r.Wasted, r.WriteUnits, r.ReadUnits = float64(b.wasted)/per, b.all.write/per, b.all.read/per
	r.HotWriteUnits, r.HotReadUnits = b.hot.write/per, b.hot.read/per
}

// sharers are those between whom fairness is judged, each with so many workers:
// the processes, or the workers where there is one process.
func (c *crew) sharers() (n, each int) {
	if c.workload.Processes == 1 {
		return c.workload.Workers, 1
	}
	return c.workload.Processes, c.workload.Workers
}

// shares are the measured changes of each sharer.
func (c *crew) shares() []float64 {
	n, _ := c.sharers()
	shares := make([]float64, n)
	for _, w := range c.workers {
		shares[w.sharer] += float64(w.measured)
	}
	return shares
}

// turns are those of a sharer on average. Who shares with nobody has a turn
// with every change.
func (c *crew) turns() float64 {
	n, _ := c.sharers()
	all := 0
	for _, w := range c.workers {
		if n == 1 {
			all += w.measured
		} else {
			all += w.turns
		}
	}
	return float64(all) / float64(n)
}

// jain is the fairness index of R. Jain, D. Chiu and W. Hawe, "A Quantitative
// Measure of Fairness and Discrimination" (1984): 1 if all have the same, 1/n
// if one has everything.
func jain(shares []float64) float64 {
	var sum, squares float64
	for _, x := range shares {
		sum += x
		squares += x * x
	}
	if squares == 0 {
		return 1 // nobody has more than nothing
	}
	return sum * sum / (float64(len(shares)) * squares)
}

// percentile by nearest rank; the values are sorted.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p * float64(len(sorted))))
	return sorted[max(rank, 1)-1]
}

package compare

import (
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// Mode is a strategy with its settings, and what it did in all rounds.
type Mode struct {
	Name string

	Changes      int // acknowledged
	Failed       int
	Lost         int // acknowledged, but not in the items
	Extra        int // in the items, but told nobody
	Rate         float64
	Requests     float64 // per change, as all that follow
	Writes       float64
	WriteUnits   float64
	ReadUnits    float64
	Cost         float64       // USD per million changes
	P50, P99     time.Duration // mean of the rounds
	Jain         float64       // the same
	PartitionMax float64       // changes per second that one partition of DynamoDB lets through
	Error        string        // the first error of a change

	// How far the rounds are apart, as a share of the mean; 0 for one round.
	RateSpread, CostSpread, P99Spread float64
}

// strategy is the package that a mode is of.
func (m Mode) strategy() string {
	s, _, _ := strings.Cut(m.Name, ", ")
	return s
}

// options are the settings that a mode switches on.
func (m Mode) options() []string { return strings.Split(m.Name, ", ")[1:] }

func (m Mode) has(option string) bool { return slices.Contains(m.options(), option) }

// once tells whether a change runs a single time. Combined changes may run
// again when what they saw was not written after all.
func (m Mode) once() bool { return m.strategy() == pessimistic && !m.has(combine) }

const (
	nolock      = "nolock"
	optimistic  = "optimistic"
	pessimistic = "pessimistic"

	combine = "combine"
	warm    = "warm"
	fair    = "fair"
)

// effectiveRate is the rate that DynamoDB lets through: engines for tests do
// not throttle.
func (m Mode) effectiveRate() float64 { return min(m.Rate, m.PartitionMax) }

// sum makes one mode of its rounds. At least one round is given.
func sum(rounds []load.Result, prices Prices) Mode {
	first := rounds[0]
	m := Mode{Name: first.Contender}
	var measured time.Duration
	var requests, writes, writeUnits, readUnits float64
	var rates, costs, tails []float64
	for _, r := range rounds {
		per := float64(max(1, r.Changes)) // what the harness has divided by
		requests += per * r.Requests
		writes += per * r.Writes
		writeUnits += per * r.WriteUnits
		readUnits += per * r.ReadUnits
		m.Changes += r.Changes
		m.Failed += r.Failed
		m.Lost += r.Lost
		m.Extra += r.Extra
		measured += r.Measured
		n := time.Duration(len(rounds))
		m.P50 += r.P50 / n
		m.P99 += r.P99 / n
		m.Jain += r.Jain / float64(n)
		if m.Error == "" {
			m.Error = r.Error
		}
		rates = append(rates, r.Rate)
		costs = append(costs, prices.of(r.WriteUnits, r.ReadUnits))
		tails = append(tails, r.P99.Seconds())
	}
	per := float64(max(1, m.Changes))
	m.Requests, m.Writes, m.WriteUnits, m.ReadUnits = requests/per, writes/per, writeUnits/per, readUnits/per
	m.Cost = prices.of(m.WriteUnits, m.ReadUnits)
	if measured > 0 {
		m.Rate = float64(m.Changes) / measured.Seconds()
	}
	m.PartitionMax = partitionMax(first.Workload, m.WriteUnits, m.ReadUnits)
	m.RateSpread, m.CostSpread, m.P99Spread = spread(rates), spread(costs), spread(tails)
	return m
}

// spread is the range of values as a share of their mean.
func spread(values []float64) float64 {
	var total float64
	for _, v := range values {
		total += v
	}
	if total == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) * float64(len(values)) / total
}

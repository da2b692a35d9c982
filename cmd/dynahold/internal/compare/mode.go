package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// Mode is a strategy with its settings, and what it did in all rounds.
type Mode struct {
	Name string

	Rounds       int // those of others, or one: see farBehind
	Changes      int // acknowledged
	Failed       int
	Lost         int // acknowledged, but not in the items
	Extra        int // in the items, but told nobody
	Rate         float64
	Requests     float64 // per change, as all that follow
	Reads        float64
	Writes       float64
	Wasted       float64 // writes whose condition failed
	WriteUnits   float64
	ReadUnits    float64
	Cost         float64       // USD per million changes
	P50, P99     time.Duration // mean of the rounds; 0: no change began in them
	Jain         float64       // the same
	JainLeast    float64       // of the least fair round
	Turns        float64       // of a process in a round, see load.Result
	Measured     time.Duration // in a round, on average
	PartitionMax float64       // changes per second that one partition of DynamoDB lets through
	Error        string        // the first error of a change

	// How far the rounds are apart, as a share of the mean; 0 for one round.
	RateSpread, CostSpread, P99Spread, JainSpread float64
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

// queues tells whether processes that want the same item wait in a queue on it.
func (m Mode) queues() bool { return m.has(fair) || m.strategy() == pessimistic && !m.has(race) }

const (
	nolock      = "nolock"
	optimistic  = "optimistic"
	pessimistic = "pessimistic"

	combine = "combine"
	warm    = "warm"
	fair    = "fair" // of optimistic, which else races
	race    = "race" // of pessimistic, which else waits in a queue
)

// effectiveRate is the rate that DynamoDB lets through: engines for tests do
// not throttle.
func (m Mode) effectiveRate() float64 { return min(m.Rate, m.PartitionMax) }

// capped tells whether DynamoDB would hold the mode up.
func (m Mode) capped() bool { return m.Rate > m.PartitionMax }

// tail is the 99th percentile in words.
func (m Mode) tail() string {
	if m.capped() {
		return fmt.Sprintf("%s at %s changes per second, without the limit of a partition", latency(m.P99), rate(m.Rate))
	}
	return latency(m.P99)
}

// sum makes one mode of its rounds. At least one round is given.
func sum(rounds []load.Result, s Settings) Mode {
	m := Mode{Name: rounds[0].Contender, Rounds: len(rounds)}
	n := float64(len(rounds))
	var requests, reads, writes, wasted, writeUnits, readUnits, hotWrite, hotRead float64
	var rates, costs, medians, tails, shares []float64
	var measured time.Duration
	for _, r := range rounds {
		per := float64(max(1, r.Changes)) // what the harness has divided by
		requests += per * r.Requests
		reads += per * r.Reads
		writes += per * r.Writes
		wasted += per * r.Wasted
		writeUnits += per * r.WriteUnits
		readUnits += per * r.ReadUnits
		hotWrite += per * r.HotWriteUnits
		hotRead += per * r.HotReadUnits
		m.Changes += r.Changes
		m.Failed += r.Failed
		m.Lost += r.Lost
		m.Extra += r.Extra
		measured += r.Measured
		m.Turns += r.Turns / n
		if m.Error == "" {
			m.Error = r.Error
		}
		rates = append(rates, r.Rate)
		if r.Changes > 0 {
			costs = append(costs, s.Prices.of(r.WriteUnits, r.ReadUnits))
			shares = append(shares, r.Jain)
		}
		if r.P99 > 0 {
			medians, tails = append(medians, float64(r.P50)), append(tails, float64(r.P99))
		}
	}
	m.P50, m.P99, m.Jain = time.Duration(mean(medians)), time.Duration(mean(tails)), mean(shares)
	m.Measured = measured / time.Duration(len(rounds))
	per := float64(max(1, m.Changes))
	m.Requests, m.Reads, m.Writes, m.Wasted = requests/per, reads/per, writes/per, wasted/per
	m.WriteUnits, m.ReadUnits = writeUnits/per, readUnits/per
	m.Cost = s.Prices.of(m.WriteUnits, m.ReadUnits)
	if measured > 0 {
		m.Rate = float64(m.Changes) / measured.Seconds()
	}
	m.PartitionMax = partitionMax(s.Workload, capacity{m.WriteUnits, m.ReadUnits}, capacity{hotWrite / per, hotRead / per})
	m.RateSpread, m.CostSpread, m.P99Spread, m.JainSpread = spread(rates), spread(costs), spread(tails), spread(shares)
	if len(shares) > 0 {
		m.JainLeast = slices.Min(shares)
	}
	return m
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// spread is the range of values as a share of their mean.
func spread(values []float64) float64 {
	m := mean(values)
	if m == 0 {
		return 0
	}
	return (slices.Max(values) - slices.Min(values)) / m
}

package load

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// normal99 is the 99th percentile of the standard normal distribution.
const normal99 = 2.3263478740408408

// delays draws the latency of one process's requests.
type delays struct {
	mu    sync.Mutex
	rng   *rand.Rand // guarded by mu
	shape func(*rand.Rand) float64
	stall time.Duration
}

func newDelays(l Latency, seed uint64, process int) *delays {
	return &delays{rng: source(seed, streamLatency, process), shape: l.shape(), stall: l.Stall}
}

// Draws returns what draws latencies one after the other, for networks of others.
func (l Latency) Draws(seed uint64) func() time.Duration { return newDelays(l, seed, 0).next }

func (d *delays) next() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	delay := time.Duration(d.shape(d.rng))
	if d.stall > 0 && d.rng.IntN(stallOf) == 0 {
		delay += d.stall
	}
	return delay
}

// stallOf is of how many requests one stalls.
const stallOf = 1000

// shape makes what draws a latency, in nanoseconds, of the two percentiles.
func (l Latency) shape() func(*rand.Rand) float64 {
	median, ratio := float64(l.Median), float64(l.P99)/float64(l.Median)
	if !l.Pareto {
		sigma := math.Log(ratio) / normal99
		return func(rng *rand.Rand) float64 { return median * math.Exp(sigma*rng.NormFloat64()) }
	}
	// The share of requests that take longer than x is (least/x)^a: a half at the median,
	// a hundredth at the 99th percentile.
	exponent := math.Log(ratio) / math.Log(100.0/2) // 1/a
	least := median * math.Pow(0.5, exponent)
	return func(rng *rand.Rand) float64 { return least * math.Pow(1-rng.Float64(), -exponent) }
}

// Each kind of randomness has its own stream, so that a worker's choice of
// items does not depend on how many requests its contender needs.
const (
	streamLatency = iota + 1
	streamItems
	streamArrivals
)

func source(seed uint64, stream, n int) *rand.Rand {
	return rand.New(rand.NewPCG(seed, uint64(stream)<<32|uint64(n))) // repeatable on purpose
}

// sleep waits for d; false means that ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

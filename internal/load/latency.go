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
	mu     sync.Mutex
	rng    *rand.Rand // guarded by mu
	median float64
	sigma  float64
}

func newDelays(l Latency, seed uint64, process int) *delays {
	return &delays{
		rng:    source(seed, streamLatency, process),
		median: float64(l.Median),
		sigma:  math.Log(float64(l.P99)/float64(l.Median)) / normal99,
	}
}

func (d *delays) next() time.Duration {
	d.mu.Lock()
	n := d.rng.NormFloat64()
	d.mu.Unlock()
	return time.Duration(d.median * math.Exp(d.sigma*n))
}

// Each kind of randomness has its own stream, so that a worker's choice of
// items does not depend on how many requests its contender needs.
const (
	streamLatency = iota + 1
	streamItems
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

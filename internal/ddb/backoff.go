package ddb

import (
	"math/rand/v2"
	"time"
)

// Backoff is full-jitter backoff ("Exponential Backoff And Jitter", AWS
// Architecture Blog).
//
// Rejected: a bound that follows the pace at which the item changes hands (with
// many waiters all of them come back after one turn, and all but one in vain),
// one that follows how long the waiting took lately (who was lucky once
// waits less, and stays lucky; nothing is gained over forgetting), and one that
// falls again for who has tried often (it halves the longest wait, for half as many
// tries again).
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration
}

// Next returns how long to sleep after a failed try. end is when the present
// hold ends at the latest.
func (b *Backoff) Next(now, end time.Time) time.Duration {
	b.bound = max(b.Min, min(2*b.bound, b.Max))
	d := time.Duration(rand.Int64N(int64(b.bound) + 1))
	if left := end.Sub(now); !end.IsZero() && left >= 0 && left < d {
		// No use in sleeping past the end: the item is free then. Waiters still
		// spread out, over the least bound.
		d = left + time.Duration(rand.Int64N(int64(b.Min)+1))
	}
	return d
}

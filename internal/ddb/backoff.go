package ddb

import (
	"math/rand/v2"
	"time"
)

// Backoff is full-jitter backoff ("Exponential Backoff And Jitter", AWS
// Architecture Blog) whose bound follows what failed writes tell.
type Backoff struct {
	Min, Max time.Duration
	bound    time.Duration
	token    int64
	at       time.Time
}

// Next returns how long to sleep after a failed try. token is the last token
// given out, if known: its growth since the last try tells the pace at which
// the item changes hands. end is when the present hold ends at the latest.
func (b *Backoff) Next(now time.Time, token int64, end time.Time) time.Duration {
	switch {
	case b.bound == 0:
		b.bound = b.Min
	case token > b.token && b.token > 0:
		// The line moves: wait for about one turn, not for the end of a lease.
		b.bound = now.Sub(b.at) / time.Duration(token-b.token)
	default:
		b.bound *= 2
	}
	b.bound = max(b.Min, min(b.bound, b.Max))
	b.token, b.at = token, now
	d := time.Duration(rand.Int64N(int64(b.bound) + 1))
	if left := end.Sub(now); !end.IsZero() && left >= 0 && left < d {
		// No use in sleeping past the end: the item is free then. Waiters still
		// spread out, over the least bound.
		d = left + time.Duration(rand.Int64N(int64(b.Min)+1))
	}
	return d
}

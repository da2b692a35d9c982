package main

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff is exponential with full jitter, as the AWS Architecture Blog
// recommends ("Exponential Backoff And Jitter"). Every peer has the same.
type backoff struct{ tries int }

const (
	backoffBase = 5 * time.Millisecond
	backoffCap  = 100 * time.Millisecond
)

// sleep waits before the next try, or fails with the context.
func (b *backoff) sleep(ctx context.Context) error {
	bound := min(backoffCap, backoffBase<<min(b.tries, 10))
	b.tries++
	timer := time.NewTimer(rand.N(bound)) // jitter
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

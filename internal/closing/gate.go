package closing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/repo"
)

// Gate lets calls in until it is closed, and knows when the last of them is out.
// The zero value is open.
type Gate struct {
	mu     sync.Mutex
	closed bool          // guarded by mu
	inside int           // guarded by mu
	empty  chan struct{} // guarded by mu: closed when nobody is inside any more; nil until Close
}

// Enter lets a call in; Leave follows. False if the gate is closed.
func (g *Gate) Enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.inside++
	}
	return !g.closed
}

// Leave lets a call out.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside--; g.inside == 0 && g.closed {
		close(g.empty)
	}
}

// Closed reports whether the gate is closed.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closed
}

// Close closes the gate; false if it was closed before.
func (g *Gate) Close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.closed, g.empty = true, make(chan struct{})
	if g.inside == 0 {
		close(g.empty)
	}
	return true
}

// Wait waits, after Close, until everybody is out, or ctx ends, whose error it
// returns then.
func (g *Gate) Wait(ctx context.Context) error {
	g.mu.Lock()
	empty := g.empty
	g.mu.Unlock()
	select {
	case <-empty:
		return nil
	default:
	}
	select {
	case <-empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// closers is how many requests Each has under way.
const closers = 16

// Each calls end for all of what is to be given back, several at a time, and
// returns the errors.
func Each[T any](all []T, end func(T) error) []error {
	var (
		next    atomic.Int64
		results = make([]error, len(all))
		workers sync.WaitGroup
	)
	for range min(closers, len(all)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(all); i = next.Add(1) - 1 {
				if ended := goroutine.Apart(func() { results[i] = end(all[i]) }); ended != nil {
					results[i] = fmt.Errorf("%w: nobody knows whether it was given back: %w", repo.ErrOutcomeUnknown, ended)
				}
			}
		})
	}
	workers.Wait()
	return slices.DeleteFunc(results, func(err error) bool { return err == nil })
}

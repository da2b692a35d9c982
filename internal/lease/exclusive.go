package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Exclusive is a mutex that nobody waits for longer than its context lasts, in
// the order of arrival. The zero value is free.
//
// A channel of one would do the same. It costs a hundred bytes, and a process
// may hold a hundred thousand leases: here there is one only while somebody
// waits.
type Exclusive struct {
	mu   sync.Mutex
	held bool            // guarded by mu
	line []chan struct{} // guarded by mu: who waits; closed when it is that one's
}

// Lock waits until it is free, or ctx ends, whose error it returns then. What is
// free is taken, whatever became of ctx.
func (e *Exclusive) Lock(ctx context.Context) error {
	e.mu.Lock()
	if !e.held {
		e.held = true
		e.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	e.line = append(e.line, mine)
	e.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.line, mine)
	if i < 0 {
		return nil // in the same moment it was handed over
	}
	e.line = slices.Delete(e.line, i, i+1)
	return waited(ctx)
}

// waited is the error of a context that ended while somebody waited.
func waited(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(cause, err) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("another request for it is still under way: %w", err)
}

// TryLock takes it if it is free.
func (e *Exclusive) TryLock() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held {
		return false
	}
	e.held = true
	return true
}

// Unlock hands it to who has waited longest, or frees it.
func (e *Exclusive) Unlock() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.held {
		panic("lease: Unlock of what is free")
	}
	if len(e.line) == 0 {
		e.held, e.line = false, nil
		return
	}
	close(e.line[0])
	e.line = slices.Delete(e.line, 0, 1)
}

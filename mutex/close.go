package mutex

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dynahold/dynahold/repo"
)

// UnlockError is a lock that Close could not free.
type UnlockError struct {
	Key   repo.Key
	Token int64
	Err   error
}

func (e *UnlockError) Error() string {
	return fmt.Sprintf("lock %v, token %d, was not freed: %v", e.Key, e.Token, e.Err)
}

// Unwrap gives the reason.
func (e *UnlockError) Unwrap() error { return e.Err }

// closers is how many locks Close frees at once.
const closers = 16

// Close ends all waiting with ErrClosed and releases every lock that is held,
// until ctx is done. Its error joins one *UnlockError for each lock that could
// not be freed; a fail-open one is free when its lease is over. Calling Close
// again tries them again. Afterwards the locker takes no locks.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.close(ErrClosed)
	idle := make(chan struct{})
	go func() { l.busy.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done(): // what is held is reported below; the calls end by themselves
	}

	l.mu.Lock()
	locks := make(chan *Lock, len(l.held))
	for lock := range l.held {
		locks <- lock
	}
	l.mu.Unlock()
	close(locks)
	errs := make(chan error, cap(locks))
	var workers sync.WaitGroup
	for range min(closers, cap(locks)) {
		workers.Go(func() {
			for lock := range locks {
				if err := lock.release(ctx, true); err != nil {
					errs <- &UnlockError{Key: lock.Key(), Token: lock.Token(), Err: err}
				}
			}
		})
	}
	workers.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

package mutex

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dynahold/dynahold/internal/lease"
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

// Close ends all waiting with ErrClosed and releases every lock that is held,
// until ctx is done. Its error joins one *UnlockError for each lock that could
// not be freed; a fail-open one is free when its lease is over. Calling Close
// again tries them again. Afterwards the locker takes no locks.
func (l *Locker) Close(ctx context.Context) error {
	l.gate.Close()
	l.close(ErrClosed)
	_ = l.gate.Wait(ctx) // what is held is reported below; the calls end by themselves
	l.mu.Lock()
	locks := slices.Collect(maps.Keys(l.held))
	l.mu.Unlock()
	return errors.Join(lease.Each(locks, func(lock *Lock) error {
		if err := lock.release(ctx, true); err != nil {
			return &UnlockError{Key: lock.Key(), Token: lock.Token(), Err: err}
		}
		return nil
	})...)
}

package pessimistic

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/guard"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a repository: those of its locks. The zero value
// works and is the safest.
type Config = lockedread.Config

// Repository implements [repo.Repository] by locking. It is safe for
// concurrent use.
type Repository[T any] struct {
	table    *repo.Table[T]
	locker   *lockedread.Locker[T]
	settings guard.Settings
}

var _ repo.Repository[struct{}] = (*Repository[struct{}])(nil)

// New checks the settings. It sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Repository[T], error) {
	locker, err := lockedread.New(table, cfg)
	if err != nil {
		return nil, err
	}
	settings, err := guard.NewSettings(cfg.Wait, cfg.ClockSkew, false)
	if err != nil {
		return nil, err
	}
	return &Repository[T]{table: table, locker: locker, settings: settings}, nil
}

// Acquire locks an item and reads it, waiting as long as ctx allows: the
// handle form of Update. See [lockedread.Locker.Acquire].
func (r *Repository[T]) Acquire(ctx context.Context, key repo.Key) (*lockedread.Held[T], error) {
	return r.locker.Acquire(ctx, key)
}

// TryAcquire is Acquire without waiting. One request.
func (r *Repository[T]) TryAcquire(ctx context.Context, key repo.Key) (*lockedread.Held[T], error) {
	return r.locker.TryAcquire(ctx, key)
}

// Locker is the repository's locker, for Break and upserts by handle.
func (r *Repository[T]) Locker() *lockedread.Locker[T] { return r.locker }

// Get reads an item, locked or not, with a consistent read. One request, one
// read unit per 4 KB.
func (r *Repository[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	return r.table.Get(ctx, key)
}

// Create writes an item that must not exist yet. One request.
func (r *Repository[T]) Create(ctx context.Context, item T) (T, error) {
	return guard.Create(ctx, r.table, item, r.settings)
}

// Update locks an item, runs change on it once, commits the difference and
// releases the lock. Two requests, two writes of the item's size in units; one
// more per try while somebody else holds the item. If change fails or panics
// the lock is released and nothing is written.
//
// The context of change ends with the caller's, and when the lock is lost.
func (r *Repository[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return r.under(ctx, key, r.locker.Acquire, change)
}

// under takes a lock in the given way and runs a change.
func (r *Repository[T]) under(ctx context.Context, key repo.Key, take func(context.Context, repo.Key) (*lockedread.Held[T], error), change func(context.Context, *T) error) (T, error) {
	var zero T
	if change == nil {
		return zero, guard.NoChange()
	}
	held, err := take(ctx, key)
	if err != nil {
		return zero, err
	}
	return apply(ctx, held, change)
}

// Upsert is Update, but a key without an item is locked too, and change gets a
// new item with nothing but its key. Three requests for a new item.
func (r *Repository[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return r.under(ctx, key, r.locker.AcquireOrCreate, change)
}

// Delete locks an item and deletes it. Two requests.
func (r *Repository[T]) Delete(ctx context.Context, key repo.Key) error {
	held, err := r.locker.Acquire(ctx, key)
	if err != nil {
		return err
	}
	defer giveBack(ctx, held)
	return held.Delete(ctx)
}

// apply runs a change under a lock and ends the hold, whatever happens.
func apply[T any](ctx context.Context, held *lockedread.Held[T], change func(context.Context, *T) error) (T, error) {
	defer giveBack(ctx, held) // also when change panics
	var zero T
	item := held.Item()
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(held.Context(), func() { cancel(context.Cause(held.Context())) })
	err := change(inner, &item)
	stop()
	switch {
	case errors.Is(err, repo.Remove):
		err := held.Delete(ctx)
		if errors.Is(err, repo.ErrNotFound) && !held.Exists() {
			err = nil // a new item that is not wanted after all
		}
		return zero, err
	case err != nil && held.Context().Err() != nil:
		return zero, errors.Join(err, context.Cause(held.Context()))
	case err != nil:
		return zero, err
	}
	return held.Commit(ctx, item)
}

// giveBack releases a hold that has not ended. That it fails is no news for
// the caller, whose result is known: the lock ends with its lease.
func giveBack[T any](ctx context.Context, held *lockedread.Held[T]) { _ = held.Release(ctx) }

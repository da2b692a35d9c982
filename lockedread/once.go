package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Once is a locker whose changes are made once: see [Locker.Once].
type Once[T any] struct {
	l     *Locker[T]
	calls typed.OnceCalls
}

// Once is the closure form under an id: where the item remembers the id, the change
// does not run, and the item is returned as it is. The id is per item. What is
// promised, for how long, and what it costs: see pessimistic.Repository.Once.
func (l *Locker[T]) Once(id string) *Once[T] {
	return &Once[T]{l: l, calls: typed.OnceCalls{ID: id}}
}

// WithFingerprint is the same locker, for a request whose fingerprint this is: see
// pessimistic.Once.
func (o *Once[T]) WithFingerprint(fingerprint []byte) *Once[T] {
	return &Once[T]{l: o.l, calls: o.calls.With(fingerprint)}
}

// Update is [Locker.Update] under the id.
func (o *Once[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](o.change(ctx, key, false, typed.ChangeOf(change)))
}

// Upsert is [Locker.Upsert] under the id.
func (o *Once[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](o.change(ctx, key, true, typed.ChangeOf(change)))
}

func (o *Once[T]) change(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error) (any, error) {
	return o.calls.Make(func(once *typed.Once) (any, error) { return o.l.l.change(ctx, key, create, change, once) })
}

// Repeated reports whether the call of this view that ended last has found its id
// on the item.
func (o *Once[T]) Repeated() bool { return o.calls.Repeated() }

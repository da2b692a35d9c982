package transaction

import (
	"context"

	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// typedView is a view for those who know the type.
type typedView[T any] struct{ v *View }

var _ repo.Repository[struct{}] = typedView[struct{}]{}

// Typed is the view as a repository.
func Typed[T any](v *View) repo.Repository[T] { return typedView[T]{v} }

func (t typedView[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	return typed.As[T](t.v.Get(ctx, key))
}

func (t typedView[T]) Create(ctx context.Context, item T) (T, error) {
	return typed.As[T](t.v.Create(ctx, &item))
}

func (t typedView[T]) Update(ctx context.Context, key repo.Key, change func(context.Context, *T) error) (T, error) {
	return typed.As[T](t.v.Update(ctx, key, typed.ChangeOf(change)))
}

func (t typedView[T]) Upsert(ctx context.Context, key repo.Key, change func(context.Context, *T) error) (T, error) {
	return typed.As[T](t.v.Upsert(ctx, key, typed.ChangeOf(change)))
}

func (t typedView[T]) Delete(ctx context.Context, key repo.Key) error { return t.v.Delete(ctx, key) }

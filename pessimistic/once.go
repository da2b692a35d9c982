package pessimistic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Once is a repository whose changes are made once for one id: see
// [Repository.Once]. It is safe for concurrent use.
type Once[T any] struct {
	r     *Repository[T]
	calls typed.OnceCalls
}

var _ repo.Repository[struct{}] = (*Once[struct{}])(nil)

// Once is the repository under the id of an operation, such as that of a message: a
// change is applied once to an item, however often it comes. The id is written with
// the change, in the same request; a call that finds it on the item changes nothing,
// and returns the item as it is, with nil. So ErrOutcomeUnknown is answered by the
// same call with the same id.
//
// The id is per item: two changes of one item under one id are one, so name the
// second one differently. It is remembered for TableConfig.Remember at least, less
// what clocks differ by, and with the item: a deletion leaves nothing, so a
// repeated Delete is ErrNotFound, and a repeated Create or Upsert makes the item
// anew. Each id takes 12 bytes of the item, and with them its price, for up to twice
// that long as long as others come, and twice as many with a fingerprint.
//
// Any number may come. An item that has more than 64 of one TableConfig.Remember (Apply:
// 128) goes over to rows beside it in its table, which no reader sees: the ids on it are
// put there, each in a row, before the next is written. Until such ids are forgotten a call
// under an id reads one row: one request and read unit more, and in the mean one row, of
// one write unit. They end by the table's TTL.
//
// An id has no owner: two requests with the same id are one operation, whoever sends them.
// That of a message of a queue is taken as it is; what a client chooses goes together
// with the client (customer + "/" + key). [Once.WithFingerprint] tells two requests apart
// that come with one id all the same.
//
// Else no call costs more requests, but the first Apply of an epoch (a span of
// TableConfig.Remember), which costs one more. An empty id is ErrConfig.
func (r *Repository[T]) Once(id string) *Once[T] {
	return &Once[T]{r: r, calls: typed.OnceCalls{ID: id}}
}

// WithFingerprint is the same repository, for a request whose fingerprint this is: all of
// it that makes it another request, such as its body, or a hash of that. Where the item
// remembers the id with another fingerprint, the call is repo.ErrMismatch, and nothing is
// written. Where either call has none the ids alone are compared. It takes 12 bytes more
// of the item, and counts as another id.
func (o *Once[T]) WithFingerprint(fingerprint []byte) *Once[T] {
	return &Once[T]{r: o.r, calls: o.calls.With(fingerprint)}
}

// Repeated reports whether the call of this view that ended last has found its id
// on the item.
func (o *Once[T]) Repeated() bool { return o.calls.Repeated() }

// Get is [Repository.Get].
func (o *Once[T]) Get(ctx context.Context, key repo.Key) (item T, err error) {
	err = o.calls.Do(func(*typed.Once) (err error) {
		item, err = o.r.Get(ctx, key)
		return err
	})
	return item, err
}

// Create is [Repository.Create] under the id: an item that was made under it is
// returned as it is.
func (o *Once[T]) Create(ctx context.Context, item T) (T, error) {
	return typed.As[T](o.calls.Make(func(once *typed.Once) (any, error) { return cas.Create(ctx, o.r.inner, &item, o.r.settings, once) }))
}

// Update is [Repository.Update] under the id. A change that finds nothing to alter
// leaves its id.
func (o *Once[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (item T, err error) {
	return typed.As[T](o.change(ctx, key, false, typed.ChangeOf(change)))
}

// Upsert is [Repository.Upsert] under the id.
func (o *Once[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (item T, err error) {
	return typed.As[T](o.change(ctx, key, true, typed.ChangeOf(change)))
}

// Delete is [Repository.Delete], but does nothing to an item that was changed under
// the id.
func (o *Once[T]) Delete(ctx context.Context, key repo.Key) error {
	_, err := o.Update(ctx, key, func(context.Context, *T) error { return repo.Remove })
	return err
}

// Apply is [Repository.Apply] under the id. An answer that is lost is asked for
// again.
func (o *Once[T]) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (T, error) {
	return typed.As[T](o.calls.Make(func(once *typed.Once) (any, error) {
		item, _, err := cas.Apply(ctx, o.r.inner, o.r.settings, key, update, conditions, once)
		return item, err
	}))
}

func (o *Once[T]) change(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error) (any, error) {
	return o.calls.Make(func(once *typed.Once) (any, error) { return typed.LockedBy(o.r.locker)(ctx, key, create, change, once) })
}

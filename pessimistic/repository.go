package pessimistic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/settings"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
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
	inner    *typed.Table
	locker   *lockedread.Locker[T]
	settings lock.Settings
}

var _ repo.Repository[struct{}] = (*Repository[struct{}])(nil)

// New checks the settings. It sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Repository[T], error) {
	locker, err := lockedread.New(table, cfg)
	if err != nil {
		return nil, err
	}
	inner := typed.TableOf(table)
	waiting, err := lock.NewSettings(inner.Core, telemetry.Pessimistic, cfg.Wait, settings.LeastWait, cfg.ClockSkew)
	if err != nil {
		return nil, err
	}
	return &Repository[T]{table: table, inner: inner, locker: locker, settings: waiting}, nil
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

// Table is the table that the repository was made of, for what is no matter of a
// strategy: Query, Scan, GetMany, EnsureTable.
func (r *Repository[T]) Table() *repo.Table[T] { return r.table }

// Get reads an item, locked or not, with a consistent read. One request, one
// read unit per 4 KB.
func (r *Repository[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	if err := nesting.Read(ctx); err != nil {
		return *new(T), err
	}
	return r.table.Get(ctx, key)
}

// Create writes an item that must not exist yet. One request.
func (r *Repository[T]) Create(ctx context.Context, item T) (T, error) {
	return typed.As[T](cas.Create(ctx, r.inner, &item, r.settings, nil))
}

// Update locks an item, runs change on it once, commits the difference and
// releases the lock. Two requests, two writes of the item's size in units; one
// of each where a caller of this process passes the lock on to the next; one
// more per try while another process holds the item. If change fails or panics
// the lock is released and nothing is written. With Config.Combine change may
// run again.
//
// Callers of this process that want the same item get it one after the other,
// in the order of their calls.
//
// The context of change ends with the caller's, and when the lock is lost.
func (r *Repository[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return r.locker.Update(ctx, key, change)
}

// Upsert is Update, but a key without an item is locked too, and change gets a
// new item with nothing but its key. Three requests for a new item.
func (r *Repository[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return r.locker.Upsert(ctx, key, change)
}

// Delete locks an item and deletes it. Two requests.
func (r *Repository[T]) Delete(ctx context.Context, key repo.Key) (err error) {
	ctx, told := r.inner.Core.Observe.Call(ctx, telemetry.Pessimistic, "Delete", key.String)
	defer told.End(&err)
	told.Delegated()
	_, err = r.locker.Update(ctx, key, func(context.Context, *T) error { return repo.Remove })
	return err
}

// Apply changes an item by an expression, without reading it and without taking its
// lock, and returns it as written: counters, appends, guarded decrements, of any
// number of writers without waiting for each other. One request, which bills the
// larger size of the item; one more, and a wait, per try while somebody holds the
// lock: no holder sees its item change.
//
// Conditions, if given, must all hold: else *repo.ConditionError (ErrCondition),
// and the item as it is. ErrNotFound where there is no item. The update must leave
// the key, the version, event time and id, and the library's attributes alone
// (ErrFixed), and name attributes that T has (ErrConfig; TableConfig.AnyAttribute). Where the
// item as written does not fit T, the error is repo.ErrDone.
//
// A request whose answer is lost is not repeated, for it could be applied twice. A
// read then looks for its traces; ErrOutcomeUnknown where it finds none.
func (r *Repository[T]) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (T, error) {
	item, _, err := cas.Apply(ctx, r.inner, r.settings, key, update, conditions, nil)
	return typed.As[T](item, err)
}

package nolock

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/cas"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Config are the settings of a repository. The zero value works and is the
// safest.
type Config struct {
	// Unit is what one step of an integer event time means, for example
	// time.Millisecond since 1970. 0: not a time (a sequence number). Fields
	// of type time.Time or attributevalue.UnixTime keep whole seconds and need
	// none: where an item can have two events in one second, use an integer.
	Unit time.Duration
	// MaxSkew refuses events dated further ahead of the local clock, which
	// would freeze the item until then. Default 1 h where the unit is known.
	MaxSkew time.Duration
	// Tombstone is how long a deletion is remembered. Default 15 days: longer
	// than SQS can keep a message.
	Tombstone time.Duration
	// Attempts bounds how often Update is tried when others write first. From 32 on it
	// takes the item's lock after three quarters of them: three writes in the place of one.
	// Default 64.
	Attempts int
	// FailLocked gives up at once with ErrLocked when somebody holds the
	// item's lock. Default: wait, as long as ctx and Wait allow.
	FailLocked bool
	// ClockSkew is how much clocks may differ before an expired lock is
	// broken. Default 1 s; negative: none.
	ClockSkew time.Duration
	// Wait bounds the sleeps after conflicts and while the item is locked.
	Wait repo.Wait
}

const (
	defaultSkew      = time.Hour
	defaultTombstone = 15 * 24 * time.Hour
	defaultAttempts  = 64
)

// Repository implements [repo.Repository] by event times. It is safe for
// concurrent use.
type Repository[T any] struct {
	table *repo.Table[T]
	r     *engine
}

var _ repo.Repository[struct{}] = (*Repository[struct{}])(nil)

// New checks the settings; T must have a field tagged repo:"eventtime". It
// sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Repository[T], error) {
	if err := typed.CheckMade(table); err != nil {
		return nil, err
	}
	inner := typed.TableOf(table)
	if inner.Core.EventTime == "" {
		return nil, fmt.Errorf("%w: the nolock strategy orders writes by event time: add an integer field tagged `repo:\"eventtime\"` to %T", repo.ErrSchema, *new(T))
	}
	if u := inner.Core.Unique.All; len(u) > 0 {
		return nil, fmt.Errorf("%w: %q of %T is unique: events are written without reading what the item has claimed before; use the optimistic or the pessimistic strategy", repo.ErrSchema, u[0].Name, *new(T))
	}
	r, err := newEngine(inner, cfg)
	if err != nil {
		return nil, err
	}
	return &Repository[T]{table, r}, nil
}

// Table is the table that the repository was made of, for what is no matter of a
// strategy: Query, Scan, GetMany, EnsureTable.
func (r *Repository[T]) Table() *repo.Table[T] { return r.table }

// Get reads an item with a consistent read. One request, one read unit per 4 KB.
func (r *Repository[T]) Get(ctx context.Context, key repo.Key) (T, error) {
	if err := nesting.Read(ctx); err != nil {
		return *new(T), err
	}
	return r.table.Get(ctx, key)
}

// Create writes an item that must not exist yet. ErrStale if it was deleted by
// a later event. One request; two over a tombstone, which may have kept what its
// type did not know.
func (r *Repository[T]) Create(ctx context.Context, item T) (T, error) {
	return typed.As[T](r.r.create(ctx, &item))
}

// Update reads an item, runs change on it, and writes the difference if nobody
// else wrote meanwhile; else it tries again. A change that moves the event time
// back is refused with ErrStale. Two requests, one more per conflict. A call
// that changes the same item from inside change, with its context, is refused
// with ErrNested: each would run the other again.
func (r *Repository[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](cas.Update(ctx, r.r.table, &r.r.policy, key, false, typed.ChangeOf(change)))
}

// Upsert is Update, but where there is no item change gets a new one with
// nothing but its key.
func (r *Repository[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](cas.Update(ctx, r.r.table, &r.r.policy, key, true, typed.ChangeOf(change)))
}

// Delete deletes an item as it is now and leaves a tombstone with its event
// time. Two requests. To apply a delete event that carries its own time, in one
// request, use [Repository.DeleteAt].
func (r *Repository[T]) Delete(ctx context.Context, key repo.Key) error {
	return r.r.remove(ctx, key)
}

// Event is the time of an event with the id that breaks ties, for types that
// have a field tagged repo:"eventid". It can stand wherever a time is asked
// for.
type Event struct{ Time, ID any }

// ErrAhead is the error of an event dated too far in the future. Nothing was
// sent.
var ErrAhead = telemetry.NewError("ahead", "event is ahead of its time")

// Put writes the whole item if its event is newer than the stored one, or if
// there is no item. ErrStale if it is older; nil for a redelivered duplicate.
// One request, two over a tombstone, no read; a refused write bills the stored item's size.
func (r *Repository[T]) Put(ctx context.Context, item T) error { return r.r.put(ctx, &item) }

// Apply makes a partial change under the same guard: at is when its event
// happened, as an integer, a time.Time, or an [Event]. Of a time.Time that is
// kept as an integer, what is less than Config.Unit is cut off. An item that
// does not exist comes into being with what update sets. The update must leave
// the key, the event time, the event id, the version and the library's attributes alone
// (ErrFixed), and name attributes that T has (ErrConfig; TableConfig.AnyAttribute). One
// request; over a tombstone two, and one more where that has kept what the update builds on.
func (r *Repository[T]) Apply(ctx context.Context, key repo.Key, at any, update expression.UpdateBuilder) error {
	return r.r.apply(ctx, key, at, update)
}

// DeleteAt applies a delete event: the item, if there is one, becomes a
// tombstone with the event's time, and older events find nothing to change
// from then on, even if there was no item yet. ErrStale if the stored event is
// newer; nil for a duplicate. One request.
func (r *Repository[T]) DeleteAt(ctx context.Context, key repo.Key, at any) error {
	return r.r.deleteAt(ctx, key, at)
}

package lockedread

import (
	"context"

	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
)

// Locker locks and reads the items of a table. It is safe for concurrent use.
type Locker[T any] struct{ l *locker }

// New checks the settings. It sends and starts nothing.
func New[T any](table *repo.Table[T], cfg Config) (*Locker[T], error) {
	if err := typed.CheckMade(table); err != nil {
		return nil, err
	}
	taking, err := cfg.taking()
	if err != nil {
		return nil, err
	}
	inner := typed.TableOf(table)
	if err := typed.CheckClaims(inner); err != nil {
		return nil, err
	}
	return &Locker[T]{newLocker(inner, taking, cfg.Combine)}, nil
}

// Acquire locks an item and reads it, waiting as long as ctx allows. One
// request if nobody holds it, one more per try; a request bills write units of
// the whole item, also when it fails. ErrNotFound if there is no item;
// ErrLocked, with *repo.LockedError, if the waiting ended first.
//
// ctx governs the waiting, never the holding.
func (l *Locker[T]) Acquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return heldOf[T](l.l.acquire(ctx, "Acquire", key, lock.Request{}))
}

// TryAcquire is Acquire without waiting: ErrLocked if somebody holds the item.
// One request. With Config.Clockless it never takes over a dead hold, which
// takes watching.
func (l *Locker[T]) TryAcquire(ctx context.Context, key repo.Key) (*Held[T], error) {
	return heldOf[T](l.l.acquire(ctx, "TryAcquire", key, lock.Request{Try: true}))
}

// AcquireOrCreate is Acquire, but a key without an item is locked too: the
// item of the hold is then new, with nothing but its key ([Held.Exists] is
// false), and comes into being with the commit. Two requests for a new item.
func (l *Locker[T]) AcquireOrCreate(ctx context.Context, key repo.Key) (*Held[T], error) {
	return heldOf[T](l.l.acquire(ctx, "AcquireOrCreate", key, lock.Request{Stub: true}))
}

// Update locks an item, runs change on it once, commits the difference and
// releases the lock: the closure form of Acquire. Two requests; one, where a
// caller of this process passes the lock on; one more per try while others
// hold the item. If change fails or panics the lock is released and nothing is
// written. An error that is repo.Remove deletes the item.
//
// The context of change ends with the caller's, and when the lock is lost.
// With Config.Combine change may run again.
func (l *Locker[T]) Update(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](l.l.change(ctx, key, false, typed.ChangeOf(change), nil))
}

// Upsert is Update, but a key without an item is locked too, and change gets a
// new item with nothing but its key. Three requests for a new item.
func (l *Locker[T]) Upsert(ctx context.Context, key repo.Key, change func(ctx context.Context, item *T) error) (T, error) {
	return typed.As[T](l.l.change(ctx, key, true, typed.ChangeOf(change), nil))
}

// Break ends a hold by force, for operators: the holder of token finds its
// commit refused with ErrLockLost. Token 0 breaks a hold that was taken by
// hand. ErrNotHeld if the item is not held under this token (see
// repo.Table.Inspect). Two requests, one more each time that the holder extends
// the lock between them. Inside a change of the same item, with its context, it is
// ErrNested, and so with the context of a hold of it: that is ended by its handle.
//
// If an answer was lost, the item tells whether the hold was ended by force, by
// this call or another's; ErrOutcomeUnknown if it does not. For that the break of
// a hold by hand leaves an id in the attribute "writers".
func (l *Locker[T]) Break(ctx context.Context, key repo.Key, token int64) (err error) {
	k, err := typed.KeyToWrite(ctx, l.l.table, key)
	if err != nil {
		return err
	}
	ctx, told := l.l.line.Core.Observe.Call(ctx, telemetry.Pessimistic, "Break", key.String)
	defer told.End(&err)
	return l.l.line.Break(ctx, key, k, token)
}

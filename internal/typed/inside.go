package typed

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/repo"
)

// Refuse is the error of a call that writes an item where it cannot be made: inside a
// change of the same item, or a transaction's closure; nil elsewhere. raw has the key,
// encoded.
func Refuse(ctx context.Context, t *Table, key repo.Key, raw ddb.Item) error {
	return nesting.Write(ctx, nesting.ItemOf(t.Core.Table, raw), key)
}

// KeyToWrite encodes the key of a call that writes an item, unless that cannot be made, as
// Refuse says.
func KeyToWrite(ctx context.Context, t *Table, key repo.Key) (raw ddb.Item, err error) {
	if raw, err = t.EncodeKey(key); err == nil {
		err = Refuse(ctx, t, key, raw)
	}
	return raw, err
}

// Inside is a change that runs with a context which tells that it is inside.
func Inside(t *Table, raw ddb.Item, change func(context.Context, any) error) func(context.Context, any) error {
	of := nesting.ItemOf(t.Core.Table, raw)
	return func(ctx context.Context, item any) error {
		return nesting.Change(ctx, of, func(ctx context.Context) error { return change(ctx, item) })
	}
}

// Locked makes a change of an item under its lock; once is the id under which it is made
// once, nil: none.
type Locked func(ctx context.Context, key repo.Key, create bool, change func(context.Context, any) error, once *Once) (any, error)

var locked func(locker any) Locked

// SetLocked is called by package lockedread, once, when the program starts.
func SetLocked(f func(locker any) Locked) { locked = f }

// LockedBy makes changes by a *lockedread.Locker[T].
func LockedBy(locker any) Locked { return locked(locker) }

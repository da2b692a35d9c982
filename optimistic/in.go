package optimistic

import (
	"context"
	"errors"
	"maps"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// View is a repository inside a transaction, whose writes it sees.
type View[T any] struct {
	repo.Repository[T]
	r    *engine
	view *transaction.View
}

// In is the repository inside a transaction. The first touch of an item reads it, but
// for Create, Save, Remove and Apply; the commit demands the version that was read,
// also of items that were only read. With Config.Fair an item that others have changed
// first three times, or hold, is locked from then on, and waited for in its queue, by
// Update, Upsert, Delete and Prefetch of this repository, also in other transactions,
// for 2 s; Get alone locks nothing. Combine and Warm have no effect there.
func (r *Repository[T]) In(tx *txn.Tx) *View[T] { return r.viewOf(tx, nil) }

// In is [Repository.In] under the id: a change of an item, among others, that is made
// once. The id is written if the transaction is. To apply a transaction once as a
// whole, see [txn.Once].
func (o *Once[T]) In(tx *txn.Tx) *View[T] { return o.r.viewOf(tx, &o.calls) }

func (r *Repository[T]) viewOf(tx *txn.Tx, ids *typed.OnceCalls) *View[T] {
	view := r.r.strategy().OnceIn(transaction.Of(tx), ids)
	return &View[T]{transaction.Typed[T](view), r.r, view}
}

// Keys are keys of the repository, for [txn.Tx.Prefetch].
func (r *Repository[T]) Keys(keys ...repo.Key) txn.Keys { return r.r.strategy().Keys(keys...) }

func (r *engine) strategy() *transaction.Strategy {
	return &transaction.Strategy{Table: r.table, By: r, Settings: r.policy.Settings, Queue: r.queue, Contention: r.contention}
}

// Apply changes an item by an expression, as [Repository.Apply] does, and must be the
// last operation of the transaction on its item, and the only one that changes it: what
// it makes of the item is known to DynamoDB alone. If a condition does not hold, the
// transaction fails for the item with *repo.ConditionError.
func (v *View[T]) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error {
	return v.view.Apply(ctx, key, update, conditions...)
}

// Save writes the whole item if the version, stored or as the transaction has left it,
// is still item's, and returns it with its new version. See [Repository.Save], also for
// a zero version: that there is no item is assumed, and an item from before the library
// is read at the next attempt of the transaction, and replaced.
func (v *View[T]) Save(ctx context.Context, item T) (T, error) {
	if v.r.table.Version(&item) != 0 {
		return typed.As[T](v.r.saveIn(ctx, v.view, &item))
	}
	made, exists := v.Create(ctx, item)
	if !errors.Is(exists, repo.ErrExists) {
		return made, exists
	}
	adopted, err := typed.As[T](v.r.saveIn(ctx, v.view, &item)) // of an item that is known now
	if errors.Is(err, repo.ErrConflict) {
		return adopted, exists
	}
	return adopted, err
}

// saveIn saves an item inside a transaction.
func (r *engine) saveIn(ctx context.Context, view *transaction.View, item any) (any, error) {
	version := r.table.Version(item)
	item = r.table.Stamp(item, r.table.Core.Clock(), false)
	raw, err := r.table.EncodeGiven(item)
	if err == nil {
		err = typed.CheckCount(r.table, item)
	}
	if err == nil {
		whole := maps.Clone(raw)
		delete(whole, r.table.Core.Created) // which stays as it is
		err = view.Write(ctx, r.table.KeyOf(item), transaction.Event{
			Whole: whole,
			Check: r.checkVersion(item),
			Fill: func(w *protocol.Write, id protocol.WriteID, _ ddb.Item) error {
				return r.saving(w, raw, id, version, nil, (*protocol.Write).IfUnlocked)
			},
		})
	}
	if err != nil {
		return nil, err
	}
	return r.table.WithVersion(item, version+1), nil
}

// Remove deletes an item if its version is still item's. See [Repository.Remove].
func (v *View[T]) Remove(ctx context.Context, item T) error {
	return v.r.removeIn(ctx, v.view, &item)
}

// removeIn deletes an item at its version inside a transaction.
func (r *engine) removeIn(ctx context.Context, view *transaction.View, item any) error {
	return view.Write(ctx, r.table.KeyOf(item), transaction.Event{
		Deletes: true, Single: true,
		Check: r.checkVersion(item),
		Fill: func(w *protocol.Write, _ protocol.WriteID, _ ddb.Item) error {
			atVersion(r.table.Core, w, r.table.Version(item), (*protocol.Write).IfUnlocked)
			return nil
		},
	})
}

// checkVersion refuses an item that is not at the version of another.
func (r *engine) checkVersion(item any) func(ddb.Item) error {
	key, given := r.table.KeyOf(item), r.table.Version(item)
	return func(now ddb.Item) error { return checkVersion(r.table.Core, key, now, given) }
}

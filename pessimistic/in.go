package pessimistic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/internal/typed"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// View is a repository inside a transaction, whose writes it sees.
type View[T any] struct {
	repo.Repository[T]
	view *transaction.View
}

// In is the repository inside a transaction. The first touch of an item, a Get too,
// takes its lock, which the commit releases: one request for each item, and one for
// the commit. An item that is not there is not locked. Create and Apply take no lock,
// unless somebody is at the item.
func (r *Repository[T]) In(tx *txn.Tx) *View[T] { return r.viewOf(tx, nil) }

// In is [Repository.In] under the id: a change of an item, among others, that is made
// once. The id is written if the transaction is. To apply a transaction once as a
// whole, see [txn.Once].
func (o *Once[T]) In(tx *txn.Tx) *View[T] { return o.r.viewOf(tx, &o.calls) }

func (r *Repository[T]) viewOf(tx *txn.Tx, ids *typed.OnceCalls) *View[T] {
	view := r.strategy().OnceIn(transaction.Of(tx), ids)
	return &View[T]{transaction.Typed[T](view), view}
}

// Keys are keys of the repository, for [txn.Tx.Prefetch], which locks the items.
func (r *Repository[T]) Keys(keys ...repo.Key) txn.Keys { return r.strategy().Keys(keys...) }

func (r *Repository[T]) strategy() *transaction.Strategy {
	return &transaction.Strategy{Table: r.inner, By: r, Settings: r.settings, Locker: local.Of(r.locker)}
}

// Apply changes an item by an expression, as [Repository.Apply] does, and must be the
// last operation of the transaction on its item, and the only one that changes it: what
// it makes of the item is known to DynamoDB alone. If a condition does not hold, the
// transaction fails for the item with *repo.ConditionError.
func (v *View[T]) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error {
	return v.view.Apply(ctx, key, update, conditions...)
}

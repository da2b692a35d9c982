package optimistic

import (
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// In is the repository inside a transaction, whose writes it sees. The first touch
// of an item reads it, but for Create; the commit demands the version that was
// read, also of items that were only read. Combine, Warm and Fair have no effect
// there.
func (r *Repository[T]) In(tx *txn.Tx) repo.Repository[T] {
	return r.strategy().In(transaction.Of(tx))
}

// Keys are keys of the repository, for [txn.Tx.Prefetch].
func (r *Repository[T]) Keys(keys ...repo.Key) txn.Keys { return r.strategy().Keys(keys...) }

func (r *Repository[T]) strategy() *transaction.Strategy[T] {
	return &transaction.Strategy[T]{Table: r.table, By: r, Settings: r.policy.Settings}
}

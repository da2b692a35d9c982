package pessimistic

import (
	"github.com/dynahold/dynahold/internal/lock"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// In is the repository inside a transaction, whose writes it sees. The first touch
// of an item, a Get too, takes its lock, which the commit releases: one request for
// each item, and one for the commit. An item that is not there is not locked.
func (r *Repository[T]) In(tx *txn.Tx) repo.Repository[T] {
	return r.strategy().In(transaction.Of(tx))
}

// Keys are keys of the repository, for [txn.Tx.Prefetch], which locks the items.
func (r *Repository[T]) Keys(keys ...repo.Key) txn.Keys { return r.strategy().Keys(keys...) }

func (r *Repository[T]) strategy() *transaction.Strategy[T] {
	return &transaction.Strategy[T]{Table: r.table, By: r, Settings: r.settings, Locker: lock.Of(r.locker)}
}

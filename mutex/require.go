package mutex

import (
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/txn"
)

var _, _ txn.Held = (*Lock)(nil), (*Group)(nil)

// RequireIn lets a transaction be applied only if the lock is still held: see
// [txn.Tx.Require].
func (l *Lock) RequireIn(tx *txn.Tx) error {
	return transaction.Of(tx).RequireLock(l.hold)
}

// RequireIn lets a transaction be applied only if all locks of the group are still
// held: see [txn.Tx.Require].
func (g *Group) RequireIn(tx *txn.Tx) error {
	for _, lock := range g.locks {
		if err := lock.RequireIn(tx); err != nil {
			return err
		}
	}
	return nil
}

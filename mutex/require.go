package mutex

import (
	"time"

	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/txn"
)

var _, _ txn.Held = (*Lock)(nil), (*Group)(nil)

// RequireIn lets a transaction be applied only if the lock is still held: see
// [txn.Tx.Require].
func (l *Lock) RequireIn(tx *txn.Tx) error {
	key, raw, err := l.l.key(l.Key())
	if err != nil {
		return err
	}
	return transaction.Of(tx).Require(l.l.taker.Core, key, raw, transaction.Hold{
		Lease: l.hold.Lease,
		Own:   func(w *protocol.Write) { w.Own(l.hold.ID(), l.hold.Token(), time.Time{}) },
		Lost:  l.hold.Refuted,
	})
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

package ticket

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

var _ txn.Held = (*Turn)(nil)

// RequireIn lets a transaction be applied only if nobody has passed the turn over:
// see [txn.Tx.Require].
func (t *Turn) RequireIn(tx *txn.Tx) error {
	k := t.t
	name, number := attrTicket+k.id, ddb.Integer(k.number)
	return transaction.Of(tx).Require(k.q.core, repo.Key{Partition: k.label}, k.raw, transaction.Hold{
		Lease: k.lease,
		// Later tickets are greater: while the entry is there it is the first.
		Own: func(w *protocol.Write) { w.IfEqual(name, number) },
		Lost: func(ctx context.Context, image ddb.Item) error {
			if ddb.Equal(image[name], number) {
				return nil
			}
			return k.lease.Gone(ctx)
		},
	})
}

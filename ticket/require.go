package ticket

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/repo"
)

var _ repo.Held = (*Turn)(nil)

// RequireIn lets a transaction be applied only if nobody has passed the turn over:
// see Require of txn.Tx.
func (t *Turn) RequireIn(tx repo.Tx) error {
	k := t.t
	if k == nil {
		return hold.ErrUnmade
	}
	name, number := attrTicket+k.id, ddb.Integer(k.number)
	return hold.Require(tx, hold.Held{
		Table: k.q.core,
		Key:   repo.Key{Partition: k.label},
		Raw:   k.raw,
		Lease: k.lease,
		// Later tickets are greater: while the entry is there it is the first.
		Own: func(w *ddb.Write) { w.IfEqual(name, number) },
		Lost: func(ctx context.Context, image ddb.Item) error {
			if ddb.Equal(image[name], number) {
				return nil
			}
			return k.lease.Gone(ctx)
		},
	})
}

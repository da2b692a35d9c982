package semaphore

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

var _ repo.Held = (*Permit)(nil)

// RequireIn lets a transaction be applied only if nobody has taken the permit for
// dead: see Require of txn.Tx.
func (h *Permit) RequireIn(tx repo.Tx) error {
	if h.s == nil {
		return hold.ErrUnmade
	}
	row := resources.Key(h.name)
	return hold.Require(tx, hold.Held{
		Table: h.s.table.Core,
		Key:   resources.KeyOf(row),
		Raw:   row,
		Lease: h.lease,
		Own:   func(w *ddb.Write) { w.IfExists(h.attr) },
		Lost: func(ctx context.Context, image ddb.Item) error {
			if image[h.attr] != nil {
				return nil
			}
			return h.lease.Gone(ctx)
		},
	})
}

package semaphore

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/txn"
)

var _, _ txn.Held = (*Permit)(nil), (*job)(nil)

// RequireIn lets a transaction be applied only if nobody has taken the permit for
// dead: see [txn.Tx.Require].
func (h *Permit) RequireIn(tx *txn.Tx) error {
	return h.s.require(tx, resourceKey(h.name), h.lease,
		func(w *protocol.Write) { w.IfExists(h.attr) },
		func(image ddb.Item) bool { return image[h.attr] != nil })
}

// RequireIn lets a transaction be applied only if nobody else works on the job: see
// [txn.Tx.Require]. [Job.DoneIn] demands that too.
func (j *job) RequireIn(tx *txn.Tx) error {
	return j.s.require(tx, j.row.key(), j.lease, j.own, j.owns)
}

// owns reports whether a job's row shows that it is still this handler's.
func (j *job) owns(row ddb.Item) bool {
	return text(row, aState) == running && ddb.Equal(row[aToken], ddb.Integer(j.token))
}

func (s *store) require(tx *txn.Tx, raw ddb.Item, held *lease.Lease, own func(*protocol.Write), owns func(ddb.Item) bool) error {
	return transaction.Of(tx).Require(s.core, keyOf(raw), raw, transaction.Hold{
		Lease: held,
		Own:   own,
		Lost: func(ctx context.Context, image ddb.Item) error {
			if owns(image) {
				return nil
			}
			return held.Gone(ctx)
		},
	})
}

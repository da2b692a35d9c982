package semaphore

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

var _, _ repo.Held = (*Permit)(nil), (*job)(nil)

// RequireIn lets a transaction be applied only if nobody has taken the permit for
// dead: see Require of txn.Tx.
func (h *Permit) RequireIn(tx repo.Tx) error {
	return h.s.require(tx, resourceKey(h.name), h.lease,
		func(w *ddb.Write) { w.IfExists(h.attr) },
		func(image ddb.Item) bool { return image[h.attr] != nil })
}

// RequireIn lets a transaction be applied only if nobody else works on the job: see
// Require of txn.Tx. [Job.DoneIn] demands that too.
func (j *job) RequireIn(tx repo.Tx) error {
	return j.s.require(tx, j.row.key(), j.lease, j.own, j.owns)
}

// owns reports whether a job's row shows that it is still this handler's.
func (j *job) owns(row ddb.Item) bool {
	return text(row, aState) == running && ddb.Equal(row[aToken], ddb.Integer(j.token))
}

func (s *store) require(tx repo.Tx, raw ddb.Item, held *lease.Lease, own func(*ddb.Write), owns func(ddb.Item) bool) error {
	return hold.Require(tx, hold.Held{
		Table: s.core,
		Key:   keyOf(raw),
		Raw:   raw,
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

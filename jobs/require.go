package jobs

import (
	"context"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/hold"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

var _ repo.Held = (*job)(nil)

// RequireIn lets a transaction be applied only if nobody else works on the job: see
// Require of txn.Tx. [Job.DoneIn] demands that too.
func (j *job) RequireIn(tx repo.Tx) error {
	if j == nil {
		return hold.ErrUnmade
	}
	row := j.row.key()
	return hold.Require(tx, hold.Held{
		Table: j.s.table.Core,
		Key:   resources.KeyOf(row),
		Raw:   row,
		Lease: j.lease,
		Own:   j.own,
		Lost: func(ctx context.Context, image ddb.Item) error {
			if j.owns(image) {
				return nil
			}
			return j.lease.Gone(ctx)
		},
	})
}

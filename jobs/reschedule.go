package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// Reschedule gives a job that waits another time, also one that had none, or that has
// failed and is to be tried again; its attempts stay counted. A time that has come puts it
// at the end of the line, at once. Errors, and requests but for one row more, as of Cancel.
// Where the new time is not the one that the id of the job has, the id gets a row of its
// own, or keeps it, as one of the caller's own does: two write units more now, and two when
// the job ends.
func (q calls) Reschedule(ctx context.Context, resource, id string, at time.Time) error {
	if err := nesting.Effect(ctx, "jobs.Reschedule", "In(tx).Reschedule"); err != nil {
		return err
	}
	for range starts {
		j, err := q.s.findToMove(ctx, resource, id, at)
		if err != nil {
			return err
		}
		n, err := q.s.movedTo(resource, j, at)
		if err != nil {
			return err
		}
		c := change{counts: j.counted(), size: 2 * j.size, writes: []types.TransactWriteItem{q.s.taken(q.s.table.Core.NewWrite(), j), q.s.table.Core.PutOf(n.row)}}
		n.count(&c.counts)
		if !n.due.IsZero() {
			c.writes = append(c.writes, n.pointer())
		}
		res := q.s.submitFor(ctx, resource, c, j.key(), isThere)
		if res.Outcome == ddb.Condition && !res.Clean && q.s.wasMade(ctx, q.s.table.Core.Key(n.row)) {
			res.Outcome = ddb.Applied // by an earlier attempt, or a copy of it
		}
		if res.Outcome == ddb.Applied {
			n.tell(ctx)
		}
		if !hasMoved(res) {
			return resources.Plain(resource, res)
		}
	}
	return q.s.restless(resource, id)
}

// findToMove is findWaiting where a job can have the time.
func (s *store) findToMove(ctx context.Context, resource, id string, at time.Time) (jobRow, error) {
	if _, err := (options{at: at}).time(s.table.Clock()); err != nil {
		return jobRow{}, err
	}
	return s.findWaiting(ctx, resource, id)
}

// movedTo is the row of a job at another time.
func (s *store) movedTo(resource string, j jobRow, at time.Time) (*insertion, error) {
	due, err := options{at: at}.time(s.table.Clock())
	if err != nil {
		return nil, err
	}
	n := &insertion{s: s, resource: resource, id: j.id, due: due}
	if due.IsZero() {
		n.row = j.waiting(resource, s.nextPlace(newLot()))
	} else {
		j.row[aMarked] = ddb.True()
		n.row = j.later(resource, placeAt(due.UnixMicro()))
	}
	if why := j.row[aError]; why != nil {
		n.row[aError] = why
	}
	return n, nil
}

// pointer leaves the place of a job in the row of its id.
func (n *insertion) pointer() types.TransactWriteItem {
	w := n.s.table.Core.NewWrite()
	w.Set(aAt, n.row[resources.SK])
	if level := n.row[aLevel]; level != nil {
		w.Set(aLevel, level)
	}
	return ddb.UpdateOf(resources.Update(w, resources.RowKey(idsPrefix+n.resource, n.id)))
}

// Cancel removes a job that waits when the transaction is applied, as [Queue.Cancel] does:
// so a change and the end of the work that was to undo it are one. It reads the job at
// once: ErrNotFound if no such job has the id, or only this transaction enqueues it, ErrLocked
// if it runs. If it is started before the commit, the closure runs again, and is told so. In
// the commit it is two items, the job and its resource, which jobs of one resource share, and
// one more where the id has a row of its own. Requests before the commit as of [Queue.Cancel]. A job that the
// transaction moves is not cancelled in it, nor moved twice (ErrConfig).
func (v *View[J]) Cancel(ctx context.Context, resource, id string) error {
	j, err := v.s.findWaiting(ctx, resource, id)
	if err != nil {
		return err
	}
	return v.s.takeIn(v.tx, &taking{s: v.s, resource: resource, job: j}, func(all rows.Rows) {
		v.s.unmarkIn(all, resource, j)
		v.s.freeIn(all, resource, j)
		v.s.keepIn(all, resource, j, func() (types.TransactWriteItem, bool) { return v.s.kept(resource, j, StateCancelled) })
	})
}

// Reschedule gives a job that waits another time when the transaction is applied, as
// [Queue.Reschedule] does. Errors and requests as of Cancel, with one item more in the
// commit, and two where the time has not come.
func (v *View[J]) Reschedule(ctx context.Context, resource, id string, at time.Time) error {
	j, err := v.s.findToMove(ctx, resource, id, at)
	if err != nil {
		return err
	}
	n, err := v.s.movedTo(resource, j, at)
	if err != nil {
		return err
	}
	return v.s.takeIn(v.tx, &taking{s: v.s, resource: resource, job: j, moves: true}, func(all rows.Rows) {
		row := v.s.rowIn(all, v.s.table.Core.Key(n.row))
		row.Action, row.Size = n, protocol.Size(n.row)
		n.count(&v.s.countersIn(all, resource).waits)
		if !n.due.IsZero() {
			v.s.idIn(all, resource, j.id).Action = pointing{to: n}
		}
	})
}

// takeIn takes a job that waits away, in a transaction, and does more there. One that is taken
// already is in the table as it was: what a second call says of it would be left out, so it
// is refused unless it says the same.
func (s *store) takeIn(tx repo.Tx, t *taking, more func(rows.Rows)) error {
	var again error
	err := rows.Add(tx, func(all rows.Rows) {
		at := s.rowIn(all, t.job.key())
		if at.Action != nil {
			if was, ok := at.Action.(*taking); ok && (was.moves || t.moves) {
				again = fmt.Errorf("%w: job %q of resource %q is moved or cancelled in this transaction already", repo.ErrConfig, t.job.id, t.resource)
			}
			return
		}
		at.Action = t
		c := s.countersIn(all, t.resource)
		c.waits.Add(t.job.counted())
		c.moves = true
		more(all)
	})
	return cmp.Or(err, again)
}

// taking removes a job that waits, as it was read.
type taking struct {
	rows.Traceless
	s        *store
	resource string
	job      jobRow
	moves    bool // to another time
}

// Write demands that it is as it was read.
func (t *taking) Write(w *ddb.Write) (types.TransactWriteItem, bool, error) {
	return t.s.taken(w, t.job), true, nil
}

// Judge believes a row that is there: the transaction would have removed it for ever.
func (t *taking) Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	if len(image) > 0 {
		return protocol.Lost
	}
	return rows.Traceless{}.Judge(ctx, image, clean)
}

// Refused asks for another run, which looks where the job is now.
func (t *taking) Refused(ddb.Item) error {
	return fmt.Errorf("job %q of resource %q: %w", t.job.id, t.resource, rows.ErrAgain)
}

// pointing leaves the place of a job in the row of its id, without a condition.
type pointing struct {
	rows.Traceless
	to *insertion
}

// Write sets the place.
func (p pointing) Write(*ddb.Write) (types.TransactWriteItem, bool, error) {
	return p.to.pointer(), true, nil
}

package jobs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// View is a queue inside a transaction.
type View[J any] struct {
	s  *store
	tx repo.Tx
}

// In is the queue inside a transaction, for jobs that the change of items brings
// about: they are queued if the transaction is applied, and only then.
func (q *Queue[J]) In(tx repo.Tx) *View[J] { return &View[J]{q.s, tx} }

// Enqueue puts a job at the end of a resource's line when the transaction is applied.
// It is [Queue.Enqueue] otherwise, and sends nothing itself: in the commit it is
// two items, the job and its resource, which jobs of one resource share, and one more
// with an id of the caller's own. Such an id that is in the table already, or was
// lately, is no reason for the transaction to fail: it is applied without the job, by
// one request more. An id that Enqueue made cannot be repeated here (ErrConfig). The
// id of the job is that of the closure's last run.
func (v *View[J]) Enqueue(ctx context.Context, resource string, job J, options ...Option) (id string, err error) {
	e, err := optionsOfOne(options)
	if err != nil {
		return "", err
	}
	if _, made := madeAt(e.id); made {
		return "", fmt.Errorf("%w: the id %s was made by Enqueue: in a transaction it cannot be told whether its job is done already; use an id of your own", repo.ErrConfig, e.id)
	}
	j, err := v.s.newJobRow(ctx, resource, job, e)
	if err != nil {
		return "", err
	}
	var exists error
	err = rows.Add(v.tx, func(all rows.Rows) { exists = j.addTo(all) })
	return j.id, cmp.Or(err, exists)
}

// addTo adds the job to a transaction, unless that has one under its key.
func (n *insertion) addTo(all rows.Rows) error {
	var mark *rows.Row
	if n.marked() {
		if mark = n.s.rowIn(all, n.mark().key()); mark.Action != nil {
			return nil // by an earlier call, or its job ends in the same transaction
		}
	}
	if err := n.claimIn(all); err != nil {
		return err
	}
	if mark != nil {
		mark.Action = n.mark()
	}
	at := n.s.rowIn(all, n.s.table.Core.Key(n.row))
	at.Action, at.Size = n, protocol.Size(n.row)
	t := n.s.countersIn(all, n.resource)
	t.inserts = append(t.inserts, n)
	return nil
}

// rowIn is a row of the queue's table in a transaction.
func (s *store) rowIn(all rows.Rows, key ddb.Item) *rows.Row {
	return all.At(s.table.Core, resources.KeyOf(key), key)
}

// idRow is the row of the id that a caller gave to a job, which is enqueued or ends.
type idRow struct {
	rows.Traceless
	s   *store
	row ddb.Item   // as it is made
	job *insertion // nil: it ends

	keep time.Duration // how long it is kept what became of the job that ends
}

func (i idRow) key() ddb.Item { return i.s.table.Core.Key(i.row) }

// Write demands of an id that is new that nobody has used it lately. That of a job that
// ends is forgotten some time later, without a condition.
func (i idRow) Write(w *ddb.Write) (types.TransactWriteItem, bool, error) {
	if i.job == nil {
		return ddb.UpdateOf(resources.Update(i.s.forget(w, i.keep), i.key())), true, nil
	}
	return i.s.idRow(i.row), !i.job.known, nil
}

// Refused learns that the id has been used: the transaction goes on without the job.
func (i idRow) Refused(ddb.Item) error {
	i.job.known = true
	return nil
}

// counters is what a transaction does to the row of a resource.
type counters struct {
	rows.Traceless
	s        *store
	resource string
	inserts  []*insertion
	ends     int64
	waits    resources.Counts // what becomes of jobs that wait
	moves    bool             // jobs that wait go elsewhere, or away
}

// countersIn finds or makes it.
func (s *store) countersIn(all rows.Rows, resource string) *counters {
	at := s.rowIn(all, resources.Key(resource))
	if at.Action == nil {
		at.Action = &counters{s: s, resource: resource}
	}
	return at.Action.(*counters)
}

// Write counts what comes and what ends.
func (t *counters) Write(w *ddb.Write) (part types.TransactWriteItem, some bool, err error) {
	n := t.waits
	n.Running -= t.ends
	for _, j := range t.inserts {
		if !j.known {
			j.count(&n)
		}
	}
	if n == (resources.Counts{}) && !t.moves {
		return part, false, nil
	}
	t.s.table.Count(w, n, t.ends > 0)
	in, err := w.Update(resources.Key(t.resource))
	if err != nil {
		return part, false, err
	}
	return ddb.UpdateOf(in), true, nil
}

// Refused is the error of a row without its counter.
func (t *counters) Refused(image ddb.Item) error {
	if t.ends > 0 && !resources.Counted(image) {
		return fmt.Errorf("%w: the row of resource %q is missing or was changed by somebody else", repo.ErrSchema, t.resource)
	}
	return nil
}

package jobs

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/repo"
)

// DoneIn removes the job when the transaction is applied, so that a job is done once
// for the change that it makes: both are written, or none. If somebody else works on
// the job meanwhile, the transaction fails with an error that has ErrLockLost for the
// job's row. Until the transaction is applied the job runs on; then it has ended, and
// a handler of [Queue.Run] returns nil. In the commit it is two items, the job and
// its resource, which jobs of one resource share, and one more if the caller gave the
// job its id.
//
// Where no answer tells what became of the commit, the job is given back, as by
// Return, to find out: one request more. If nobody can tell, the job ends with
// ErrOutcomeUnknown, as the transaction does.
func (j *job) DoneIn(tx repo.Tx) error {
	if err := j.RequireIn(tx); err != nil {
		return err
	}
	return rows.Add(tx, func(all rows.Rows) {
		at := j.s.rowIn(all, j.row.key())
		if at.Action != nil {
			return // it was called before
		}
		at.Action = heldJob{j}
		j.s.countersIn(all, j.resource).ends++
		j.s.unmarkIn(all, j.resource, j.row)
		j.s.freeIn(all, j.resource, j.row)
		j.s.keepIn(all, j.resource, j.row, j.keptDone)
	})
}

// unmarkIn lets the id of a job that a transaction ends be forgotten some time later.
func (s *store) unmarkIn(all rows.Rows, resource string, j jobRow) {
	if !j.marked() {
		return
	}
	at := s.idIn(all, resource, j.id)
	at.Action = idRow{s: s, row: at.Raw, keep: j.keep}
}

// idIn is the row of the id of a job that a transaction has found in the table: one that it
// enqueues under the same id is that job.
func (s *store) idIn(all rows.Rows, resource, id string) *rows.Row {
	at := s.rowIn(all, resources.RowKey(idsPrefix+resource, id))
	if made, ok := at.Action.(idRow); ok && made.job != nil {
		made.job.known = true
	}
	return at
}

var _ rows.Ending = heldJob{}

// Write deletes the row, as Done does.
func (j heldJob) Write(w *ddb.Write) (types.TransactWriteItem, bool, error) {
	return j.removed(w), true, nil
}

// Judge draws the conclusion from a row that is not this handler's any more. One that
// is there was not deleted, and never will be: its token has moved on.
func (j heldJob) Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	if verdict := j.judgeCommit(ctx, image); verdict != protocol.Undecided {
		return verdict
	}
	return rows.Traceless{}.Judge(ctx, image, clean)
}

// judgeCommit judges the transaction as a Done, of which an attempt may have been applied.
func (j heldJob) judgeCommit(ctx context.Context, image ddb.Item) protocol.Verdict {
	switch j.judgeGone(ctx, j.done(), image, false) {
	case resources.ByThisEnd:
		return protocol.Committed
	case resources.ByOthers:
		return protocol.Lost
	}
	return protocol.Undecided
}

// Refused ends the handle: the row had no other condition.
func (j heldJob) Refused(ddb.Item) error {
	j.s.open.Remove(j.job)
	return j.lease.Lose()
}

// Applied ends the handle.
func (j heldJob) Applied() {
	if j.lease.Ended() == nil {
		j.lease.Finish(repo.ErrReleased)
	}
	j.s.open.Remove(j.job)
}

// Begin waits for other requests for the job.
func (j heldJob) Begin(ctx context.Context) error {
	if err := j.lease.BeginLast(ctx); err != nil {
		return j.lease.Describe(err)
	}
	if why := j.lease.Ended(); why != nil {
		j.lease.Done()
		return j.lease.Describe(why)
	}
	return nil
}

// Done ends Begin.
func (j heldJob) Done() { j.lease.Done() }

// Timeout bounds an attempt.
func (j heldJob) Timeout() time.Duration { return j.s.cfg.Lease / 3 }

// Settle gives the job back. If that is applied it has found the job in place, which
// the transaction would have removed, and now never can.
func (j heldJob) Settle(ctx context.Context) (verdict protocol.Verdict) {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	c := j.ended(j.returned())
	send := func() (ddb.Result, bool) {
		res := j.s.submit(ctx, j.resource, c)
		return res, ddb.Throttled(res.Err) // nobody else will try again
	}
	_ = j.lease.End(ctx, repo.ErrReleased, send, func(res ddb.Result) error {
		failed := res.Outcome == ddb.Condition && res.Images[0].Failed
		switch {
		case res.Outcome == ddb.Applied, failed && len(res.Images[0].Item) > 0:
			verdict = protocol.Lost
		case failed && res.Clean:
			verdict = j.judgeCommit(ctx, nil)
		}
		if verdict == protocol.Undecided {
			j.lease.Finish(repo.ErrOutcomeUnknown)
			return resources.Unknown(j.resource, res.Err)
		}
		return nil
	})
	j.s.open.Remove(j.job)
	return verdict
}

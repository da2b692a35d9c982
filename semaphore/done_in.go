package semaphore

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/transaction"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// DoneIn removes the job when the transaction is applied, so that a job is done once
// for the change that it makes: both are written, or none. If somebody else works on
// the job meanwhile, the transaction fails with an error that has ErrLockLost for the
// job's row. Until the transaction is applied the job runs on; then it has ended, and
// a handler of [Semaphore.Run] returns nil. In the commit it is two items, the job and
// its resource, which jobs of one resource share, and one more if the caller gave the
// job its id.
//
// Where no answer tells what became of the commit, the job is given back, as by
// Return, to find out: one request more. If nobody can tell, the job ends with
// ErrOutcomeUnknown, as the transaction does.
func (j *job) DoneIn(tx *txn.Tx) error {
	run := transaction.Of(tx)
	if err := j.RequireIn(tx); err != nil {
		return err
	}
	return run.Rows(func(all transaction.Rows) {
		at := all.At(j.s.core, keyOf(j.row.row), j.key())
		if at.Action != nil {
			return // it was called before
		}
		at.Action = &jobRemoval{j}
		j.s.countersOf(all, j.resource).ends++
		if j.row.marked() {
			mark := rowKey(idsPrefix+j.resource, j.row.id)
			at := all.At(j.s.core, keyOf(mark), mark)
			if m, ok := at.Action.(idInsert); ok {
				m.known = true // the job is there, whoever enqueues it again
			}
			at.Action = idExpiry{j.s, mark}
		}
	})
}

// jobRemoval is the row of a job that a transaction ends.
type jobRemoval struct{ *job }

var _ transaction.Ending = (*jobRemoval)(nil)

// Write deletes the row.
func (l *jobRemoval) Write(w *protocol.Write) (types.TransactWriteItem, bool, error) {
	return ddb.DeleteOf(w.Delete(l.key())), true, nil
}

// Judge draws the conclusion from a row that is not this handler's any more. One that
// is there was not deleted, and never will be: its token has moved on. One that is
// gone before the deadline is gone by the transaction, or by a copy of it that the
// network made.
func (l *jobRemoval) Judge(ctx context.Context, image ddb.Item, clean bool) protocol.Verdict {
	switch {
	case len(image) > 0:
		return protocol.Lost
	case !l.lease.Expired() && !l.quarantined(ctx, nil):
		if broken, known := l.broken(ctx); broken {
			return protocol.Lost
		} else if known {
			return protocol.Committed
		}
	}
	return withoutTrace(clean)
}

// Refused ends the handle: the row had no other condition.
func (l *jobRemoval) Refused(ddb.Item) error {
	l.s.open.Remove(l.job)
	return l.lease.Lose()
}

// Applied ends the handle.
func (l *jobRemoval) Applied() {
	if l.lease.Ended() == nil {
		l.lease.Finish(repo.ErrReleased)
	}
	l.s.open.Remove(l.job)
}

// Begin waits for other requests for the job.
func (l *jobRemoval) Begin(ctx context.Context) error {
	if err := l.lease.BeginLast(ctx); err != nil {
		return l.lease.Describe(err)
	}
	if why := l.lease.Ended(); why != nil {
		l.lease.Done()
		return l.lease.Describe(why)
	}
	return nil
}

// Done ends Begin.
func (l *jobRemoval) Done() { l.lease.Done() }

// Timeout bounds an attempt.
func (l *jobRemoval) Timeout() time.Duration { return l.s.cfg.Lease / 3 }

// Settle gives the job back. If that is applied it has found the job in place, which
// the transaction would have removed, and now never can.
func (l *jobRemoval) Settle(ctx context.Context) (verdict protocol.Verdict) {
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	w := l.s.core.NewWrite()
	l.own(w)
	c := l.returned(w)
	send := func() (ddb.Result, bool) { return l.s.submit(ctx, l.resource, c), false }
	_ = l.lease.End(ctx, repo.ErrReleased, send, func(res ddb.Result) error {
		verdict = l.judgeReturn(ctx, res)
		if verdict == protocol.Undecided {
			l.lease.Finish(repo.ErrOutcomeUnknown)
			return unknown(l.resource, res.Err)
		}
		return nil
	})
	l.s.open.Remove(l.job)
	return verdict
}

// judgeReturn is the verdict on the transaction from the answer to the Return that
// follows it.
func (l *jobRemoval) judgeReturn(ctx context.Context, res ddb.Result) protocol.Verdict {
	failed := res.Outcome == ddb.Condition && res.Images[0].Failed
	switch {
	case res.Outcome == ddb.Applied, failed && len(res.Images[0].Item) > 0:
		return protocol.Lost
	case failed && res.Clean && !l.lease.Expired() && !l.quarantined(ctx, nil):
		if broken, known := l.broken(ctx); broken {
			return protocol.Lost
		} else if known {
			return protocol.Committed
		}
	}
	return protocol.Undecided
}

// idExpiry is the row of the id of a job that ends.
type idExpiry struct {
	st  *store
	raw ddb.Item
}

// Write lets the id be forgotten some time later. It has no condition.
func (u idExpiry) Write(w *protocol.Write) (part types.TransactWriteItem, some bool, err error) {
	in, err := u.st.forget(w).Update(u.raw)
	if err != nil {
		return part, false, err
	}
	return ddb.UpdateOf(in), true, nil
}

// Judge is never asked.
func (idExpiry) Judge(_ context.Context, _ ddb.Item, clean bool) protocol.Verdict {
	return withoutTrace(clean)
}

// Refused is never asked.
func (idExpiry) Refused(ddb.Item) error { return nil }

// Applied is left to the job's own row.
func (idExpiry) Applied() {}

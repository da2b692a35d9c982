package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ending is a way in which a job ends. A transaction ends it by the same writes, and what
// became of it is judged alike.
type ending struct {
	name    string
	write   func(w *ddb.Write) change // w demands that the job is this handler's
	removes bool                      // the row, from its place
	buries  bool                      // the job becomes a dead letter
	keeps   bool                      // what became of it is kept, if that is wanted
	due     time.Time                 // when it is due again, set by write; zero: it is in line, or gone
}

// Done removes the job, which has succeeded. ErrLockLost if somebody took it
// over, who works on it now; ErrReleased if it was ended already. A request
// without an answer is repeated as long as ctx, with 3 s of its own when that
// has ended, and the lease allow, and then ends the job with ErrOutcomeUnknown.
// After other errors it is not renewed any more, and Done may be called again
// until the lease is over. One request: a transaction of two rows; calls for
// jobs of one resource share theirs while one is under way.
//
// Inside the closure of a transaction it is refused with repo.ErrNested: use DoneIn.
func (j *job) Done(ctx context.Context) error { return j.end(ctx, j.done()) }

func (j *job) done() *ending {
	return &ending{name: "Done", removes: true, keeps: true, write: func(w *ddb.Write) change {
		c := change{counts: resources.Counts{Running: -1}, size: j.row.size, writes: []types.TransactWriteItem{j.removed(w)}}
		j.s.gone(&c, j.resource, j.row)
		c.keep(j.keptDone())
		return c
	}}
}

// removed is the write that removes the job from its place.
func (j *job) removed(w *ddb.Write) types.TransactWriteItem {
	return ddb.DeleteOf(w.Delete(j.row.key()))
}

// Fail gives the job back to be tried again, after a delay that doubles with
// each attempt, until when it waits as a job with a time does; after the last attempt it
// goes to the dead letters. cause is kept there and may be nil. Errors and requests as of
// Done, with three rows, and as of Enqueue for a time where no [Queue.Run] of this process
// looks for it.
func (j *job) Fail(ctx context.Context, cause error) error {
	why := ""
	if cause != nil {
		why = shorten(errorText(cause))
	}
	e := j.failed(why)
	err := j.end(ctx, e)
	if err == nil && e.buries {
		j.s.table.Core.Observe.DeadLettered(ctx, j.resource, j.row.id, j.row.attempts, why)
	}
	return err
}

func (j *job) failed(why string) *ending {
	s := j.s
	e := &ending{name: "Fail", removes: true, buries: s.spent(j.row)}
	e.write = func(w *ddb.Write) change {
		c := change{counts: resources.Counts{Running: -1}, size: 2 * j.row.size, writes: []types.TransactWriteItem{j.removed(w)}}
		if e.buries {
			c.counts.Dead, c.writes = 1, append(c.writes, s.table.Core.PutOf(s.deadRow(j.resource, j.row, why)))
			s.free(&c, j.resource, j.row)
			return c
		}
		due := s.table.Clock().Add(s.cfg.Retry.delay(j.row.attempts))
		j.putOff(&c, e, j.row, due, why)
		return c
	}
	return e
}

// putOff adds to the end of the job that it waits for a time. Its place in line is that
// time: what waits longest since comes first.
func (j *job) putOff(c *change, e *ending, row jobRow, due time.Time, why string) {
	place := placeAt(due.UnixMicro())
	again, counts := j.s.from(due, j.resource, place, row)
	if why != "" {
		again[aError] = ddb.Text(why)
	}
	c.counts.Add(counts)
	c.writes = append(c.writes, j.s.table.Core.PutOf(again))
	if e.due = due; counts.Later == 0 {
		e.due = time.Time{}
	}
}

// Snooze puts the job off: it is started again as soon as d has passed, by the clock of
// the queue, or with the next look after it; this attempt is not counted. It ends this
// handler's part, and a handler of [Queue.Run] returns nil. Until then it waits as a job
// with a time does. Errors and requests as of Fail.
func (j *job) Snooze(ctx context.Context, d time.Duration) error {
	return j.end(ctx, j.snoozed(d))
}

func (j *job) snoozed(d time.Duration) *ending {
	e := &ending{name: "Snooze", removes: true}
	e.write = func(w *ddb.Write) change {
		c := change{counts: resources.Counts{Running: -1}, size: 2 * j.row.size, writes: []types.TransactWriteItem{j.removed(w)}}
		row := j.row
		row.attempts--
		j.putOff(&c, e, row, j.s.table.Clock().Add(max(d, 0)), resources.Text(j.row.row, aError))
		return c
	}
	return e
}

// Return gives the job back to its place, at once and without counting the
// attempt: for handlers that are told to stop. Errors and requests as of Done.
func (j *job) Return(ctx context.Context) error { return j.end(ctx, j.returned()) }

func (j *job) returned() *ending {
	return &ending{name: "Return", write: func(w *ddb.Write) change {
		w.Set(aState, ddb.Text(queued))
		w.Set(aAttempts, ddb.Integer(int64(j.row.attempts-1)))
		w.Remove(aUntil, aOwner, aNotBefore)
		return change{counts: resources.Counts{Running: -1, Queued: 1}, size: j.row.size, writes: []types.TransactWriteItem{ddb.UpdateOf(resources.Update(w, j.row.key()))}}
	}}
}

// own demands that the job is still this handler's.
func (j *job) own(w *ddb.Write) {
	w.IfEqual(aState, ddb.Text(running))
	w.IfEqual(aToken, ddb.Integer(j.token))
}

// owns reports whether a job's row shows that it is still this handler's.
func (j *job) owns(row ddb.Item) bool {
	return resources.Text(row, aState) == running && ddb.Equal(row[aToken], ddb.Integer(j.token))
}

// end sends the change that ends the job.
func (j *job) end(ctx context.Context, e *ending) (err error) {
	form := afterwards
	if e.name == "Done" {
		form = "DoneIn(tx)"
	}
	if err := nesting.Effect(ctx, "job."+e.name, form); err != nil {
		return err
	}
	ctx, span := j.s.table.Core.Observe.Call(ctx, telemetry.Job, e.name, j.Resource)
	defer span.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	return j.endOn(ctx, repo.ErrReleased, e)
}

// afterwards is the way out of a closure for what no transaction can have a part in.
const afterwards = "it after the transaction"

// endOn is end as long as ctx allows; why is the cause of the context's end.
func (j *job) endOn(ctx context.Context, why error, e *ending) error {
	c := j.ended(e)
	c.held = heldIn(ctx)
	send := func() (ddb.Result, bool) {
		res := j.s.submit(ctx, j.resource, c)
		c.held = nil // it does not wait twice
		return j.s.table.Core.Looked(ctx, j.row.key(), j.owns, res), false
	}
	err := j.lease.End(ctx, why, send, func(res ddb.Result) error { return j.judge(ctx, e, res) })
	if err == nil || j.lease.Ended() != nil {
		j.s.open.Remove(j)
	}
	if !e.due.IsZero() && (err == nil || errors.Is(err, repo.ErrOutcomeUnknown)) {
		j.s.markRetry(ctx, j.resource, e.due)
	}
	return err
}

// ended is the change that ends the job.
func (j *job) ended(e *ending) change {
	w := j.s.table.Core.NewWrite()
	j.own(w)
	return e.write(w)
}

// judge says what the answer to an end means.
func (j *job) judge(ctx context.Context, e *ending, res ddb.Result) error {
	switch {
	case res.Outcome == ddb.Applied:
		return nil
	case res.Outcome == ddb.Refused:
		return res.Err // somebody may come back to it
	case res.Outcome == ddb.Condition && !res.Images[0].Failed:
		return fmt.Errorf("%w: the row of resource %q is missing or was changed by somebody else, or a dead letter %q is there already", repo.ErrSchema, j.resource, j.row.id)
	case res.Outcome == ddb.Condition:
		switch j.judgeGone(ctx, e, res.Images[0].Item, res.Clean && !res.Unjudged) {
		case resources.ByThisEnd:
			return nil
		case resources.ByOthers:
			return j.lease.Lose()
		}
	}
	j.lease.Finish(repo.ErrOutcomeUnknown)
	return resources.Unknown(j.resource, res.Err)
}

// judgeGone judges an end that has found the job's row not as its handler has it; clean
// says that no attempt before it can have been applied. Up to two reads, in this rare case
// only.
func (j *job) judgeGone(ctx context.Context, e *ending, row ddb.Item, clean bool) resources.Gone {
	there, expired := len(row) > 0, j.lease.Expired()
	byOthers := there && e.removes || clean && (expired || j.takenOver(row))
	switch {
	case !there && e.keeps && j.keptByUs(ctx):
		return resources.ByThisEnd
	case byOthers || expired:
		return resources.JudgeGone(false, byOthers, false, expired)
	case !there && !e.buries && j.quarantined(ctx):
		return resources.JudgeGone(false, clean, true, false)
	}
	broken, known := j.broken(ctx)
	return resources.JudgeGone(false, broken, !known, false)
}

// takenOver reports whether a job's row shows that somebody else works on it:
// after a Return that was applied, or before the deadline by a clock that is
// further ahead than is allowed.
func (j *job) takenOver(row ddb.Item) bool {
	attempts, err := resources.Integer(row, aAttempts, resources.MaxCount)
	returned := err == nil && int(attempts) <= j.row.attempts // by us, which has counted the attempt off, and started by others
	return resources.Text(row, aState) == running && !ddb.Equal(row[aToken], ddb.Integer(j.token)) && !returned
}

// quarantined reports whether a job whose row is gone was left aside because its
// row could not be read any more: somebody without the protocol had changed it.
func (j *job) quarantined(ctx context.Context) bool {
	dead, err := j.s.table.Core.Get(ctx, resources.RowKey(deadPrefix+j.resource, j.row.id))
	return err == nil && len(dead) > 0
}

// broken reports whether a job whose row is not this handler's any more was taken from
// it by force. known is false where nobody can tell.
func (j *job) broken(ctx context.Context) (broken, known bool) {
	r, err := j.s.table.Read(ctx, j.resource)
	if err != nil || r.Token == 0 {
		return false, false
	}
	return r.WasBroken(strconv.FormatInt(j.token, 10)), true
}

// endOnClose gives the job back, as long as ctx allows. Its context ends before.
func (j *job) endOnClose(ctx context.Context) error {
	j.lease.Forget(ErrClosed)
	if err := j.endOn(ctx, ErrClosed, j.returned()); err != nil && !j.endedByUs() {
		return &repo.CloseError{Table: j.s.table.Core.Name, Key: resources.KeyOf(j.row.row), Token: j.token, Err: err}
	}
	return nil
}

// endedByUs reports whether the job was ended by its handler, or by Close. An error does
// not tell: it may say so of what its context has ended with.
func (j *job) endedByUs() bool {
	why := j.lease.Ended()
	return errors.Is(why, repo.ErrReleased) || errors.Is(why, ErrClosed)
}

// unlessClosed hands out what was started; if Close came meanwhile, and may not have seen
// it, it gives it back.
func (j *job) unlessClosed() error {
	if j.s.open.Add(j) == nil {
		return nil
	}
	ctx, cancel := ddb.DetachedTimeout(context.Background())
	defer cancel()
	return errors.Join(ErrClosed, j.endOnClose(ctx))
}

package semaphore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// Job is a job that runs, and the permit that it runs under. It is safe for
// concurrent use; it ends with Done, Fail, Return, or its loss, and renews
// itself until then.
type Job[J any] struct{ *job }

// Value is what was enqueued.
func (j *Job[J]) Value() J { return *j.value.(*J) }

// job is a job whatever the type of its value, on which nothing but its decoding
// depends.
type job struct {
	lease    *lease.Lease
	s        *store
	resource string
	value    any // a pointer to what was enqueued
	row      jobRow
	token    int64
}

func (s *store) newJob(ctx context.Context, resource string, l jobRow, token int64, until, sent time.Time) *job {
	l.attempts++
	j := &job{s: s, resource: resource, row: l, token: token}
	j.lease = lease.New(&s.lease, heldJob{j}, sent.Add(s.cfg.Lease), until)
	_ = s.open.Add(j) // whoever starts it looks whether the semaphore is closed
	j.lease.Start(ctx)
	return j
}

// ID names the job, through all its attempts.
func (j *job) ID() string { return j.row.id }

// Resource is the resource that the job is for.
func (j *job) Resource() string { return j.resource }

// Format prints the id, the resource and the attempt.
func (j *job) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "job %s of %q, attempt %d", j.row.id, j.resource, j.row.attempts)
}

// Attempt counts the starts of the job, from 1.
func (j *job) Attempt() int { return j.row.attempts }

// Token is the fencing token: it grows with every start of a job, and with
// every permit, of the resource. Where the limit is 1, an outside resource that
// refuses smaller ones is protected from handlers that lost their job.
func (j *job) Token() int64 { return j.token }

// Until is when the handler must stop, on its own clock, unless a renewal moves
// it.
func (j *job) Until() time.Time { return j.lease.Until() }

// Context is cancelled when the job ends, with the cause: ErrLockLost,
// ErrLockExpired, or ErrReleased.
func (j *job) Context() context.Context { return j.lease.Context() }

// Done removes the job, which has succeeded. ErrLockLost if somebody took it
// over, who works on it now; ErrReleased if it was ended already. A request
// without an answer is repeated as long as ctx, with 3 s of its own when that
// has ended, and the lease allow, and then ends the job with ErrOutcomeUnknown.
// After other errors it is not renewed any more, and Done may be called again
// until the lease is over. One request: a transaction of two rows; calls for
// jobs of one resource share theirs while one is under way.
//
// Inside the closure of a transaction it is refused with repo.ErrNested: use DoneIn.
func (j *job) Done(ctx context.Context) error {
	if err := nesting.Effect(ctx, "job.Done", "DoneIn(tx)"); err != nil {
		return err
	}
	return j.end(ctx, "Done", func(w *ddb.Write) change {
		c := change{running: -1, size: j.row.size, writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(j.row.key()))}}
		j.s.unmark(&c, j.resource, j.row)
		return c
	})
}

// Fail gives the job back to be tried again, after a delay that doubles with
// each attempt; after the last attempt it goes to the dead letters. cause is
// kept there and may be nil. Errors and requests as of Done, with three rows.
func (j *job) Fail(ctx context.Context, cause error) error {
	s, why := j.s, ""
	if cause != nil {
		why = shorten(errorText(cause))
	}
	err := j.end(ctx, "Fail", func(w *ddb.Write) change {
		c := change{running: -1, size: 2 * j.row.size, writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(j.row.key()))}}
		if j.row.attempts >= s.cfg.Retry.Attempts {
			c.dead, c.writes = 1, append(c.writes, s.core.PutOf(s.deadRow(j.resource, j.row, why)))
			return c
		}
		// The place in line is the time from which it is due: what waits longest
		// since comes first, and what is not due stands behind what is.
		due := s.clock().Add(s.cfg.Retry.delay(j.row.attempts))
		row := j.row.waiting(j.resource, placeAt(due.UnixMicro()))
		row[aNotBefore] = ddb.Number(ddb.Seconds(due))
		if why != "" {
			row[aError] = ddb.Text(why)
		}
		c.queued, c.writes = 1, append(c.writes, s.core.PutOf(row))
		return c
	})
	if err == nil && j.row.attempts >= s.cfg.Retry.Attempts {
		s.core.Observe.DeadLettered(ctx, j.resource, j.row.id, j.row.attempts, why)
	}
	return err
}

// Return gives the job back to its place, at once and without counting the
// attempt: for handlers that are told to stop. Errors and requests as of Done.
func (j *job) Return(ctx context.Context) error {
	return j.end(ctx, "Return", j.returned)
}

func (j *job) returned(w *ddb.Write) change {
	w.Set(aState, ddb.Text(queued))
	w.Set(aAttempts, ddb.Integer(int64(j.row.attempts-1)))
	w.Remove(aUntil, aOwner, aNotBefore)
	return change{running: -1, queued: 1, size: j.row.size, writes: []types.TransactWriteItem{ddb.UpdateOf(update(w, j.row.key()))}}
}

// own demands that the job is still this handler's.
func (j *job) own(w *ddb.Write) {
	w.IfEqual(aState, ddb.Text(running))
	w.IfEqual(aToken, ddb.Integer(j.token))
}

// end sends the change that ends the job.
func (j *job) end(ctx context.Context, operation string, writes func(*ddb.Write) change) (err error) {
	ctx, told := j.s.core.Observe.Call(ctx, telemetry.Job, operation)
	told.Key(j.Resource)
	defer told.End(&err)
	ctx, cancel := ddb.Cleaning(ctx)
	defer cancel()
	return j.endOn(ctx, repo.ErrReleased, writes)
}

// endOn is end as long as ctx allows; why is the cause of the context's end.
func (j *job) endOn(ctx context.Context, why error, writes func(*ddb.Write) change) error {
	w := j.s.core.NewWrite()
	j.own(w)
	c := writes(w)
	err := j.lease.End(ctx, why, func() (ddb.Result, bool) { return j.s.submit(ctx, j.resource, c), false }, func(res ddb.Result) error {
		gone := res.Outcome == ddb.Condition && res.Images[0].Failed // the row is not as this job's handler has it
		byOthers := gone && res.Clean && (j.takenOver(res.Images[0].Item) || c.dead == 0 && len(res.Images[0].Item) == 0 && j.quarantined(ctx))
		switch {
		case res.Outcome == ddb.Applied:
			return nil
		case gone && !byOthers && !j.lease.Expired():
			// Before the deadline nobody else can have ended it, but by force: this call
			// has, or a copy of it that the network made.
			if broken, known := j.broken(ctx); broken {
				return j.lease.Lose()
			} else if known {
				return nil
			}
		case res.Outcome == ddb.Refused:
			return res.Err // somebody may come back to it
		case gone && res.Clean:
			return j.lease.Lose()
		case res.Outcome == ddb.Condition && !gone:
			return fmt.Errorf("%w: the row of resource %q is missing or was changed by somebody else, or a dead letter %q is there already", repo.ErrSchema, j.resource, j.row.id)
		}
		j.lease.Finish(repo.ErrOutcomeUnknown)
		return unknown(j.resource, res.Err)
	})
	j.s.settled(j, err, j.lease.Ended())
	return err
}

// takenOver reports whether a job's row shows that somebody else works on it:
// after a Return that was applied, or before the deadline by a clock that is
// further ahead than is allowed.
func (j *job) takenOver(row ddb.Item) bool {
	attempts, err := integer(row, aAttempts, maxCount)
	returned := err == nil && int(attempts) <= j.row.attempts // by us, which has counted the attempt off, and started by others
	return text(row, aState) == running && !ddb.Equal(row[aToken], ddb.Integer(j.token)) && !returned
}

// quarantined reports whether a job whose row is gone was left aside because its
// row could not be read any more: somebody without the protocol had changed it.
// One read, in this rare case only.
func (j *job) quarantined(ctx context.Context) bool {
	dead, err := j.s.core.Get(ctx, rowKey(deadPrefix+j.resource, j.row.id))
	return err == nil && len(dead) > 0
}

// heldJob is a job as its lease, and a transaction that ends it, know it.
type heldJob struct{ *job }

// Renew moves the end of the job.
func (j heldJob) Renew(ctx context.Context, until time.Time) error {
	w, end := j.s.core.NewWrite(), ddb.Number(ddb.Seconds(until))
	w.Set(aUntil, end)
	j.own(w)
	w.If(w.Name(aUntil) + " < " + w.Value(end)) // a late copy must not move the end back
	res := j.s.core.Update(ctx, update(w, j.row.key()), ddb.Options{NoGrace: true, Holding: true, Absence: true})
	if res.Outcome == ddb.Condition && (!ddb.Equal(res.Image[aUntil], end) || !ddb.Equal(res.Image[aToken], ddb.Integer(j.token))) {
		j.s.open.Remove(j.job)
		return j.lease.Lose()
	}
	return res.Err
}

// Describe says of an error which job it is about.
func (j heldJob) Describe(err error) error {
	return fmt.Errorf("job %s of %q, attempt %d: %w", j.row.id, j.resource, j.row.attempts, err)
}

// Name is what the log says of the job.
func (j heldJob) Name() (kind string, which []slog.Attr) {
	return "job", []slog.Attr{slog.String("resource", j.resource), slog.String("job", j.row.id)}
}

// gone reports whether an error says that the job is not ours any more.
func gone(err error) bool {
	return errors.Is(err, repo.ErrLockLost) || errors.Is(err, repo.ErrOutcomeUnknown)
}

package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
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
	result   atomic.Pointer[string] // JSON, as of SetResult; nil: there is none
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
// ErrLockExpired, or ErrReleased. With it a permit of the resource (package semaphore) that
// would have to wait for the job itself is ErrNested.
func (j *job) Context() context.Context { return j.inside(j.lease.Context()) }

// inside is a context that tells of the job, and of the place that it takes of its resource.
func (j *job) inside(ctx context.Context) context.Context {
	ctx = nesting.Holding(ctx, nesting.ItemOf(j.s.table.Core, resources.Key(j.resource)), j.row.id, j.lease.Cause)
	return nesting.Holding(ctx, nesting.ItemOf(j.s.table.Core, j.row.key()), strconv.FormatInt(j.token, 10), j.lease.Cause)
}

// heldJob is a job as its lease, and a transaction that ends it, know it.
type heldJob struct{ *job }

// Renew moves the end of the job.
func (j heldJob) Renew(ctx context.Context, until time.Time) error {
	w, end := j.s.table.Core.NewWrite(), ddb.Number(ddb.Seconds(until))
	w.Set(aUntil, end)
	j.own(w)
	w.If(w.Name(aUntil) + " < " + w.Value(end)) // a late copy must not move the end back
	res := j.s.table.Core.Update(ctx, resources.Update(w, j.row.key()), ddb.Options{NoGrace: true, Holding: true, Absence: true})
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

package jobs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// JobInfo is what a line tells of a job.
type JobInfo struct {
	ID        string
	Running   bool
	Attempts  int
	Error     string    // of the last attempt that failed
	Owner     string    // who runs it
	Token     int64     // fencing token, while it runs
	Until     time.Time // when others may take it over, on the owner's clock
	NotBefore time.Time // when it is due after a failure; zero otherwise

	// Enqueued is when it was enqueued, by the clock of its producer. Of a job with an id
	// of the caller's own it is when it came into line last, and zero after a failure.
	Enqueued time.Time
	// Since is when the owner started it, on its own clock, in seconds; zero while it
	// does not run.
	Since time.Time
}

// Jobs iterates over the jobs of a resource in the order of the line, without
// their values. A row that cannot be read comes with ErrSchema, and the
// iteration goes on; every other error ends it. One request per megabyte of jobs, one read unit per 4 KB.
func (s *store) Jobs(ctx context.Context, resource string) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		for j, err := range s.jobRows(ctx, jobsPrefix, resource) {
			info := JobInfo{ID: j.id, Running: j.state == running, Attempts: j.attempts, Error: j.failure, NotBefore: j.notBefore, Enqueued: j.enqueued()}
			if info.Running {
				by := stored.Record{By: j.owner}
				info.Owner, info.Token, info.Until, info.Since = by.Owner(), j.token, j.until, by.Asked()
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// jobRows iterates over the rows of a resource's jobs in order. One that cannot be
// read comes with ErrSchema, and the iteration goes on; every other error ends it.
func (s *store) jobRows(ctx context.Context, prefix, resource string) iter.Seq2[jobRow, error] {
	if err := s.table.CheckName(resource); err != nil {
		return func(yield func(jobRow, error) bool) { yield(jobRow{}, err) }
	}
	return resources.Parsed(s.table.Rows(ctx, prefix+resource, resources.Page{}), parseJob)
}

// findJob reads the row of a job in line: at the place that an id made by Enqueue
// names, or else wherever it stands.
func (s *store) findJob(ctx context.Context, resource, id string) (jobRow, error) {
	key, err := s.jobKey(jobsPrefix, resource, id)
	if err != nil {
		return jobRow{}, err
	}
	if _, ok := madeAt(id); ok {
		row, err := s.table.Core.Get(ctx, key)
		if err != nil {
			return jobRow{}, err
		}
		if len(row) > 0 && resources.Text(row, aID) == id {
			return parseJob(row)
		}
	}
	for j, err := range s.jobRows(ctx, jobsPrefix, resource) {
		if j.id == id {
			return j, err
		}
		if err != nil && !errors.Is(err, repo.ErrSchema) {
			return jobRow{}, err
		}
	}
	return jobRow{}, fmt.Errorf("%w: job %q of resource %q", repo.ErrNotFound, id, resource)
}

// Cancel removes a job that waits, also one that has failed and is to be tried again.
// ErrNotFound if no job in line has this id; ErrLocked, with *repo.LockedError, if it
// runs: see [Queue.BreakJob]. A dead letter is removed by Discard. An id of the
// caller's own is remembered for 24 hours, as after Done.
//
// Two requests; a job that has failed stands elsewhere in the line than its id says: one
// more for each megabyte before it. ErrOutcomeUnknown where an answer was lost and the
// job is gone: it may have been started, and done, before.
func (s *store) Cancel(ctx context.Context, resource, id string) error {
	for range starts {
		j, err := s.findJob(ctx, resource, id)
		if err != nil {
			return err
		}
		if j.state == running {
			return fmt.Errorf("job %q of resource %q runs: %w", id, resource, &repo.LockedError{Table: s.table.Core.Name, Key: resources.KeyOf(j.row),
				Owner: stored.Record{By: j.owner}.Owner(), Until: j.until, Token: j.token})
		}
		w := s.table.Core.NewWrite()
		j.asRead(w)
		c := change{counts: resources.Counts{Queued: -1}, size: j.size, writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(j.key()))}}
		s.unmark(&c, resource, j)
		res := s.submitFor(ctx, resource, c)
		// A row that is there no attempt has removed: it has changed since it was read.
		if res.Outcome != ddb.Condition || !res.Clean && (!res.Images[0].Failed || len(res.Images[0].Item) == 0) {
			return resources.Plain(resource, res)
		}
	}
	return fmt.Errorf("%w: job %q of resource %q is started and given back all the time", repo.ErrConflict, id, resource)
}

package jobs

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// JobInfo is what a line tells of a job.
type JobInfo struct {
	ID        string
	Running   bool
	Priority  int // its level: see [Priority]
	Attempts  int
	Error     string    // of the last attempt that failed
	Owner     string    // who runs it
	Token     int64     // fencing token, while it runs
	Until     time.Time // when others may take it over, on the owner's clock
	NotBefore time.Time // when it is due, if it waits for that; zero otherwise

	// Enqueued is when it was enqueued, by the clock of its producer. Of a job with an id
	// of the caller's own it is when it came into line last, and zero before that and after a
	// failure.
	Enqueued time.Time
	// Since is when the owner started it, on its own clock, in seconds; zero while it
	// does not run.
	Since time.Time
}

// Jobs iterates over the jobs of a resource in the order of the line, and behind that over
// those that wait for their time, without their values. A row that cannot be read comes
// with ErrSchema, and the iteration goes on; every other error ends it. A read of the
// resource, one request per megabyte of jobs, one read unit per 4 KB; where jobs wait for
// their time, those of the 16th of all resources that have the same shard are read, up to
// the last of them.
func (q calls) Jobs(ctx context.Context, resource string) iter.Seq2[JobInfo, error] {
	return func(yield func(JobInfo, error) bool) {
		for j, err := range q.s.waitingRows(ctx, resource) {
			info := JobInfo{ID: j.id, Running: j.state == running, Priority: j.level(), Attempts: j.attempts, Error: j.failure, NotBefore: j.notBefore, Enqueued: j.enqueued()}
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

// waitingRows iterates over the rows of a line, and behind that over those of the
// resource's jobs that wait for their time.
func (s *store) waitingRows(ctx context.Context, resource string) iter.Seq2[jobRow, error] {
	return func(yield func(jobRow, error) bool) {
		for j, err := range s.jobRows(ctx, jobsPrefix, resource) {
			if !yield(j, err) || err != nil && !errors.Is(err, repo.ErrSchema) {
				return
			}
		}
		r, err := s.table.Read(ctx, resource)
		if err != nil {
			yield(jobRow{}, err)
			return
		}
		for j, err := range s.laterRows(ctx, resource) {
			if r.Later <= 0 || !yield(j, err) {
				return
			}
			r.Later--
		}
	}
}

// laterRows iterates over the rows of a resource's jobs that wait for their time, in order.
// One that cannot be read comes with ErrSchema, and the iteration goes on.
func (s *store) laterRows(ctx context.Context, resource string) iter.Seq2[jobRow, error] {
	return func(yield func(jobRow, error) bool) {
		for j, err := range resources.Parsed(s.table.Rows(ctx, laterKey(resource), resources.Page{}), parseLater) {
			if (j.resource == resource || err != nil && j.row == nil) && !yield(j, err) {
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

package jobs

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rows"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ManyError says which jobs of an [Queue.EnqueueMany] are not in the table, by their place
// in what was given to it, and why.
type ManyError struct {
	Resource string
	Missing  []int // they were not enqueued
	Unknown  []int // nobody has answered: enqueue them one by one again, with their ids
	Err      error
}

func (e *ManyError) Error() string {
	return fmt.Sprintf("resource %q: %d jobs were not enqueued, of %d it is not known: %v", e.Resource, len(e.Missing), len(e.Unknown), e.Err)
}

// Unwrap is why.
func (e *ManyError) Unwrap() error { return e.Err }

// EnqueueMany is Enqueue for many jobs, with the same options each, in as many transactions
// as it takes: about 90 jobs each, fewer where they are large. They come into line in their
// order. It ends with the first transaction that fails: then the error is a *[ManyError]
// that says which jobs are not enqueued, and of which it is not known; of the others, and of
// these, ids has the id, "" of those that are not enqueued. Nothing is sent where an option
// is wrong, or a job too large (ErrTooLarge). WithID and Unique are for one job. Two write
// units for a job of up to 1 KB, and two for each transaction.
func (q *Queue[J]) EnqueueMany(ctx context.Context, resource string, jobs []J, options ...Option) (ids []string, err error) {
	return q.s.enqueueMany(ctx, resource, len(jobs), func(i int) any { return jobs[i] }, options)
}

func (s *store) enqueueMany(ctx context.Context, resource string, count int, job func(int) any, given []Option) (ids []string, err error) {
	e, err := optionsOf(given)
	if err != nil {
		return nil, err
	}
	if e.given || e.claims {
		return nil, fmt.Errorf("%w: WithID and Unique are for one job", repo.ErrConfig)
	}
	if err := s.table.CheckName(resource); err != nil {
		return nil, err
	}
	if err := nesting.Effect(ctx, "jobs.EnqueueMany", "In(tx).Enqueue"); err != nil {
		return nil, err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Job, "EnqueueMany")
	span.Key(func() string { return resource })
	defer span.End(&err)
	all := make([]*insertion, count)
	for i := range all {
		if all[i], err = s.newJobRow(ctx, resource, job(i), e); err != nil {
			return nil, fmt.Errorf("job %d of %d: %w", i+1, count, err)
		}
		ids = append(ids, all[i].id)
	}
	for at := 0; at < count; {
		some := all[at : at+fitsOne(all[at:])]
		err := s.putSome(ctx, resource, some)
		if mayBeThere(err) {
			some[0].tell(ctx)
			for _, n := range some[1:] {
				n.tellHere()
			}
		}
		if err != nil {
			return ids, missing(resource, ids, at, len(some), err)
		}
		at += len(some)
	}
	return ids, nil
}

// fitsOne is how many of some jobs, one at least, fit into one transaction.
func fitsOne(all []*insertion) (n int) {
	for size := 0; n < min(len(all), maxWrites); n++ {
		if size += protocol.Size(all[n].row); size > maxSize && n > 0 {
			break
		}
	}
	return n
}

// putSome sends the transaction of some jobs.
func (s *store) putSome(ctx context.Context, resource string, some []*insertion) error {
	actions := []rows.Action{&counters{s: s, resource: resource, inserts: some}}
	token := []string{s.table.Core.Name, resource}
	for _, n := range some {
		actions, token = append(actions, n), append(token, n.id)
	}
	res, err := s.putAll(ctx, some[0], some[0].sending(tokenOf(token...)), actions...)
	if err != nil {
		return err
	}
	return s.judgePut(ctx, some[0], res)
}

// missing is the error about jobs from one on, of which the next n were sent.
func missing(resource string, ids []string, from, n int, why error) *ManyError {
	e := &ManyError{Resource: resource, Err: why}
	for i := from; i < len(ids); i++ {
		if i < from+n && errors.Is(why, repo.ErrOutcomeUnknown) {
			e.Unknown = append(e.Unknown, i)
			continue
		}
		e.Missing = append(e.Missing, i)
		ids[i] = ""
	}
	return e
}

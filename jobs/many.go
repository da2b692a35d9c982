package jobs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// ManyError says which jobs of an [Queue.EnqueueMany] are not in the table, by their place
// in what was given to it, and why.
type ManyError struct {
	Resource string
	Missing  []int // they were not enqueued
	Unknown  []int // nobody has answered: enqueue all of these together again, [WithIDs]
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
// these, ids has the id, "" of those that are not enqueued: so the same call [WithIDs] leaves
// each job once. Nothing is sent where an option is wrong, or a job too large (ErrTooLarge).
// WithID and Unique are for one job. Jobs with a time follow each other by a microsecond. Two
// write units for a job of up to 1 KB, and two for each transaction.
func (q *Queue[J]) EnqueueMany(ctx context.Context, resource string, jobs []J, options ...Option) (ids []string, err error) {
	return q.s.enqueueMany(ctx, resource, len(jobs), func(i int) any { return jobs[i] }, options)
}

func (s *store) enqueueMany(ctx context.Context, resource string, count int, job func(int) any, o []Option) (ids []string, err error) {
	e, err := optionsOf(o)
	if err != nil {
		return nil, err
	}
	given := e.ids
	if e.given && len(given) != count || e.claims {
		return given, fmt.Errorf("%w: WithID and Unique are for one job, WithIDs has an id for each", repo.ErrConfig)
	}
	if err := s.table.CheckName(resource); err != nil {
		return given, err
	}
	if err := nesting.Effect(ctx, "jobs.EnqueueMany", "In(tx).Enqueue"); err != nil {
		return given, err
	}
	ctx, span := s.table.Core.Observe.Call(ctx, telemetry.Job, "EnqueueMany", func() string { return resource })
	defer span.End(&err)
	lots, err := s.lots(ctx, resource, count, job, e)
	if err != nil {
		return given, err
	}
	for _, n := range slices.Concat(lots...) {
		ids = append(ids, n.id)
	}
	at := 0
	for _, some := range lots {
		err := s.put(ctx, some)
		if mayBeThere(err) {
			some[0].tell(ctx)
			for _, n := range some[1:] {
				n.tellHere()
			}
		}
		if err != nil {
			return ids, missing(resource, ids, given, at, len(some), err)
		}
		at += len(some)
	}
	return ids, nil
}

// lots makes the rows of some jobs, by the transactions in which they are sent: those of new
// jobs as large as they can be, those of others as they were.
func (s *store) lots(ctx context.Context, resource string, count int, job func(int) any, e options) (lots [][]*insertion, err error) {
	e.given = false
	n, size := 0, 0 // of the present lot
	seen := map[string]bool{}
	for i := range count {
		if e.ids != nil {
			e.id = e.ids[i]
		}
		switch _, again := madeAt(e.id); {
		case seen[e.id]:
			return nil, fmt.Errorf("%w: job %d has the id %q of another", repo.ErrConfig, i+1, e.id)
		case again:
			e.lot = ""
		case e.id != "":
			return nil, fmt.Errorf("%w: EnqueueMany has not made the id %q of job %d", repo.ErrConfig, e.id, i+1)
		case e.lot == "":
			e.lot, n, size = newLot(), 0, 0
		}
		seen[e.id] = e.id != ""
		e.nth = time.Duration(i) * time.Microsecond
		j, err := s.newJobRow(ctx, resource, job(i), e)
		if err != nil {
			return nil, fmt.Errorf("job %d of %d: %w", i+1, count, err)
		}
		if n, size = n+1, size+protocol.Size(j.row); n == maxWrites || size > maxSize {
			e.lot = "" // the next one begins another
		}
		if last := len(lots) - 1; last >= 0 && lotIn(lots[last][0].id) == lotIn(j.id) {
			lots[last] = append(lots[last], j)
		} else {
			lots = append(lots, []*insertion{j})
		}
	}
	return lots, nil
}

// missing is the error about jobs from one on, of which the next n were sent. Of those whose
// ids were given an earlier call may have been applied.
func missing(resource string, ids, given []string, from, n int, why error) *ManyError {
	e := &ManyError{Resource: resource, Err: why}
	if from > 0 {
		e.Err = telemetry.Part(why) // whoever repeats all of it doubles what is there
	}
	for i := from; i < len(ids); i++ {
		if i < from+n && errors.Is(why, repo.ErrOutcomeUnknown) || len(given) > 0 && given[i] != "" {
			e.Unknown = append(e.Unknown, i)
			continue
		}
		e.Missing = append(e.Missing, i)
		ids[i] = ""
	}
	return e
}

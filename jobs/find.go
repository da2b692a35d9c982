package jobs

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/nesting"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/internal/stored"
	"github.com/dynahold/dynahold/repo"
)

// findJob reads the row of a job in line, or of one that waits for its time: at the place
// that its id names, or the row of its id, or else wherever it stands. Every move of a job
// changes its resource, which is read before and after where no row was found: if it is
// the same, there is none.
func (s *store) findJob(ctx context.Context, resource, id string) (jobRow, error) {
	if _, err := s.jobKey(jobsPrefix, resource, id); err != nil {
		return jobRow{}, err
	}
	if j, err := s.findAtPlace(ctx, resource, id); err != nil || j.id != "" {
		return j, err
	}
	for range starts {
		r, err := s.table.Read(ctx, resource)
		if err != nil {
			return jobRow{}, err
		}
		if j, err := s.searchJob(ctx, r, id); err != nil || j.id != "" {
			return j, err
		}
		now, err := s.table.Read(ctx, resource)
		if err != nil {
			return jobRow{}, err
		}
		if now.Changes == r.Changes {
			return jobRow{}, fmt.Errorf("%w: job %q of resource %q", repo.ErrNotFound, id, resource)
		}
	}
	return jobRow{}, fmt.Errorf("%w: resource %q changes all the time, and job %q was not found", repo.ErrConflict, resource, id)
}

// findAtPlace reads the row of a job where its id says that it stands. No job: it has no
// place by its id, or is not there any more.
func (s *store) findAtPlace(ctx context.Context, resource, id string) (jobRow, error) {
	if _, made := madeAt(id); made {
		place, due := placeOf(id)
		if j, err := s.findAt(ctx, resource, id, place, levelIn(id), !due.IsZero()); err != nil || j.id != "" {
			return j, err
		}
	}
	row, err := s.table.Core.Get(ctx, resources.RowKey(idsPrefix+resource, id))
	if err != nil {
		return jobRow{}, err
	}
	place := resources.Text(row, aAt)
	if place == "" {
		return jobRow{}, nil
	}
	level, err := resources.Integer(row, aLevel, lastLevel)
	if err != nil {
		return jobRow{}, err
	}
	return s.findAt(ctx, resource, id, place, int(level), true)
}

// findAt reads the row of a job at a place, in line, and before that, if it is timed,
// among those that wait for their time. No job: it is at neither.
func (s *store) findAt(ctx context.Context, resource, id, place string, level int, timed bool) (jobRow, error) {
	var keys []ddb.Item
	if timed { // a job goes from there into the line, and back to another place only
		keys = append(keys, resources.RowKey(laterKey(resource), place))
	}
	for _, key := range append(keys, resources.RowKey(jobsPrefix+resource, inLine(level, place))) {
		row, err := s.table.Core.Get(ctx, key)
		if err != nil {
			return jobRow{}, err
		}
		if len(row) == 0 || resources.Text(row, aID) != id {
			continue
		}
		if row[aResource] != nil {
			return parseLater(row)
		}
		return parseJob(row)
	}
	return jobRow{}, nil
}

// searchJob reads through the line for a job, and through those that wait for their time
// if there are any of the resource.
func (s *store) searchJob(ctx context.Context, r resources.Row, id string) (jobRow, error) {
	places := []iter.Seq2[jobRow, error]{s.jobRows(ctx, jobsPrefix, r.Name)}
	if r.Later != 0 {
		places = append(places, s.laterRows(ctx, r.Name))
	}
	for _, rows := range places {
		for j, err := range rows {
			if j.id == id {
				return j, err
			}
			if err != nil && !errors.Is(err, repo.ErrSchema) {
				return jobRow{}, err
			}
		}
	}
	return jobRow{}, nil
}

// locked is the error of a job that runs.
func (s *store) locked(resource string, j jobRow) error {
	return fmt.Errorf("job %q of resource %q runs: %w", j.id, resource, &repo.LockedError{Table: s.table.Core.Name, Key: resources.KeyOf(j.row),
		Owner: stored.Record{By: j.owner}.Owner(), Until: j.until, Token: j.token})
}

// Cancel removes a job that waits, also one with a time, or one that has failed and is to
// be tried again. ErrNotFound if no such job has this id: it may be done. ErrLocked, with
// *repo.LockedError, if it runs: see [Queue.BreakJob]. Of a Cancel and a start at the same
// time one is applied, and the other told so. A dead letter is removed by Discard. An id of
// the caller's own is remembered for 24 hours, as after Done.
//
// Two or three requests; a job that has failed, and one with an id of the caller's own but
// without a time, stands elsewhere in the line than its id says: a read of the resource and
// one request for each megabyte before it. ErrOutcomeUnknown where an answer was lost and
// the job is gone: it may have been started, and done, before.
func (q calls) Cancel(ctx context.Context, resource, id string) error {
	if err := nesting.Effect(ctx, "jobs.Cancel", "In(tx).Cancel"); err != nil {
		return err
	}
	for range starts {
		j, err := q.s.findWaiting(ctx, resource, id)
		if err != nil {
			return err
		}
		c := change{counts: j.counted(), size: j.size, writes: []types.TransactWriteItem{q.s.taken(q.s.table.Core.NewWrite(), j)}}
		q.s.gone(&c, resource, j)
		c.keep(q.s.kept(resource, j, StateCancelled))
		if res := q.s.submitFor(ctx, resource, c, j.key(), isThere); !hasMoved(res) {
			return resources.Plain(resource, res)
		}
	}
	return q.s.restless(resource, id)
}

// findWaiting is findJob for a job that must not run.
func (s *store) findWaiting(ctx context.Context, resource, id string) (jobRow, error) {
	j, err := s.findJob(ctx, resource, id)
	if err == nil && j.state == running {
		err = s.locked(resource, j)
	}
	return j, err
}

// taken is the write that removes a job that waits, as it was read.
func (s *store) taken(w *ddb.Write, j jobRow) types.TransactWriteItem {
	j.asRead(w)
	return ddb.DeleteOf(w.Delete(j.key()))
}

// isThere reports whether a row that a change removes is there.
func isThere(row ddb.Item) bool { return len(row) > 0 }

// hasMoved reports whether a write has found a job elsewhere than where it was read, or
// started: a row that is there no attempt has removed.
func hasMoved(res ddb.Result) bool {
	return res.Outcome == ddb.Condition && (res.Clean || res.Images[0].Failed && len(res.Images[0].Item) > 0)
}

// restless is the error about a job that changes all the time.
func (s *store) restless(resource, id string) error {
	return fmt.Errorf("%w: job %q of resource %q is started and given back all the time", repo.ErrConflict, id, resource)
}

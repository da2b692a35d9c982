package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// A job that waits for its time, because it was enqueued for one or is to be tried again,
// lies in a row beside the line: in a partition for each shard of resources, whose sort
// keys begin with the time. So a query for what is due reads no more than that, whatever
// lies behind; and a program that knows no such rows takes no job before its time. What is
// due is moved into the line, by whoever sees it: one transaction, whose condition is the
// row. The row is never changed, so it is moved once.

// soon is how near a time must be for a job to go into the line, with its time on it: it
// is cheaper there, and reads of the line pass it over for that moment.
const soon = 10 * time.Millisecond

func laterKey(resource string) string { return laterShard(resources.ShardOf(resource)) }

func laterShard(shard int) string { return fmt.Sprintf("%s%x", laterPrefix, shard) }

// timedID is the id of a job that is made for a time: its place as if it were enqueued
// now, and the time.
func timedID(made string, due time.Time) string {
	return fmt.Sprintf("%s-%015x", made, due.UnixMicro())
}

// placeOf is where an id that this package has made says that its job stands; due is its
// time, zero if it had none.
func placeOf(id string) (place string, due time.Time) {
	const end = 15 + 1 + 13
	if len(id) < end+1+15 {
		return id[:end], due
	}
	due = timeIn(id[end+1 : end+1+15])
	return placeIn(due, lotIn(id)), due
}

// placeIn is the place of a job at a time, told from others by its lot.
func placeIn(at time.Time, lot string) string { return fmt.Sprintf("%015x-%s", at.UnixMicro(), lot) }

// later is the job in a row of those that wait for their time.
func (j jobRow) later(resource, place string) ddb.Item {
	row := j.at(laterKey(resource), place)
	row[aResource] = ddb.Text(resource)
	return row
}

// from is the job in a row from which it can be started at a time, and what that does to
// the counters of its resource.
func (s *store) from(due time.Time, resource, place string, j jobRow) (row ddb.Item, c resources.Counts) {
	now := s.table.Clock()
	switch {
	case due.After(now.Add(soon)):
		return j.later(resource, place), resources.Counts{Later: 1}
	case due.After(now):
		row = j.waiting(resource, place)
		row[aNotBefore] = ddb.Number(ddb.Seconds(due))
	default:
		row = j.waiting(resource, place)
	}
	return row, resources.Counts{Queued: 1}
}

// counted is what it does to the counters that a job which waits is taken away.
func (j jobRow) counted() resources.Counts {
	if j.isLater() {
		return resources.Counts{Later: -1}
	}
	return resources.Counts{Queued: -1}
}

// isLater reports whether a job waits for its time, in a row beside the line.
func (j jobRow) isLater() bool { return j.row[aResource] != nil }

// parseLater reads the row of a job that waits for its time.
func parseLater(row ddb.Item) (jobRow, error) {
	j, err := parseJob(row)
	if j.resource = resources.Text(row, aResource); err == nil && j.resource == "" {
		err = fmt.Errorf("%w: job %q: attribute %q is missing", repo.ErrSchema, j.place, aResource)
	}
	at, ok := madeAt(j.place)
	if err == nil && !ok {
		err = fmt.Errorf("%w: job %q: its sort key is no place", repo.ErrSchema, j.place)
	}
	j.notBefore = at
	return j, err
}

// movedDue is what became of the jobs of a resource whose time has come.
type movedDue struct {
	jobs   int   // that were moved into the line
	others bool  // others, or a copy of a request, were faster
	failed error // why some could not be moved
}

// moveDue puts jobs whose time has come into the lines of their resources.
func (s *store) moveDue(ctx context.Context, due []jobRow, givesWay bool) map[string]movedDue {
	of := map[string][]change{}
	for _, j := range due {
		c := s.moving(j)
		c.givesWay = givesWay
		of[j.resource] = append(of[j.resource], c)
	}
	done := map[string]movedDue{}
	for resource, all := range of {
		var m movedDue
		for _, res := range s.submitAll(ctx, resource, all) {
			switch res.Outcome {
			case ddb.Applied:
				m.jobs++
			case ddb.Condition:
				m.others = true
			case ddb.Refused:
				m.failed = res.Err
			}
		}
		done[resource] = m
	}
	return done
}

// moving is the change that moves a job into the line.
func (s *store) moving(j jobRow) change {
	w := s.table.Core.NewWrite()
	w.IfExists(resources.PK)
	row := j.waiting(j.resource, j.place)
	if why := j.row[aError]; why != nil {
		row[aError] = why
	}
	return change{counts: resources.Counts{Queued: 1, Later: -1, Registers: true, Levels: j.row[aLevel] != nil}, size: 2 * j.size,
		writes: []types.TransactWriteItem{ddb.DeleteOf(w.Delete(j.key())), s.table.Core.PutOf(row)}}
}

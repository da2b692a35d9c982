package jobs

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
	"github.com/dynahold/dynahold/repo"
)

// ScheduleInfo is what the table knows of a schedule of [Queue.Periodic].
type ScheduleInfo struct {
	Name string
	Spec string    // what it was made of, as [Schedule.String] says
	Next time.Time // the tick that is next: one in the past has no job yet
	Last time.Time // the last tick that has a job; zero: none has
}

// Schedules iterates over the schedules of all programs, in the order of their names, also
// those that no program has any more. One whose row cannot be read comes with its name and
// ErrSchema, and the iteration goes on; every other error ends it. One request, one read
// unit per 4 KB.
func (s *store) Schedules(ctx context.Context) iter.Seq2[ScheduleInfo, error] {
	return resources.Parsed(s.table.Rows(ctx, schedulesKey, resources.Page{}), parseSchedule)
}

func parseSchedule(row ddb.Item) (ScheduleInfo, error) {
	info := ScheduleInfo{Name: resources.Text(row, resources.SK), Spec: resources.Text(row, aSpec)}
	next, err := ddb.Time(row[aNext])
	if info.Next = next; err == nil && row[aLast] != nil {
		info.Last, err = ddb.Time(row[aLast])
	}
	if err != nil {
		return ScheduleInfo{Name: info.Name}, fmt.Errorf("%w: schedule %q: %w", repo.ErrSchema, info.Name, err)
	}
	return info, nil
}

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
func (q calls) Schedules(ctx context.Context) iter.Seq2[ScheduleInfo, error] {
	return resources.Parsed(q.s.table.Rows(ctx, schedulesKey, resources.Page{}), parseSchedule)
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

// ForgetSchedule removes a schedule that no program has any more. A program that has it makes
// it anew with its next look, and if a tick has come meanwhile leaves that out. ErrNotFound if
// there is none, ErrBusy if it moves on meanwhile, ErrOutcomeUnknown if an answer was lost, too.
// Two requests.
func (q calls) ForgetSchedule(ctx context.Context, name string) error {
	if _, err := q.s.table.Keys.EncodeKey(repo.Key{Partition: schedulesKey, Sort: name}); err != nil {
		return err
	}
	row, err := q.s.table.Core.Get(ctx, resources.RowKey(schedulesKey, name))
	if err != nil {
		return err
	}
	if len(row) == 0 {
		return fmt.Errorf("%w: schedule %q", repo.ErrNotFound, name)
	}
	w := q.s.table.Core.NewWrite()
	w.IfSeen(row, aSpec, aNext) // a copy that comes late must not remove what was made since
	stands := func(now ddb.Item) bool { return ddb.Equal(now[aSpec], row[aSpec]) && ddb.Equal(now[aNext], row[aNext]) }
	res := q.s.table.Core.Delete(ctx, w.Delete(resources.RowKey(schedulesKey, name)), ddb.Options{Stands: stands})
	switch {
	case res.Outcome == ddb.Condition && len(res.Image) == 0:
		return nil // by an attempt before it, a copy of it, or somebody else
	case res.Outcome == ddb.Condition && res.Clean && !res.Unjudged:
		return fmt.Errorf("%w: schedule %q has moved on: some program has it", ErrBusy, name)
	}
	return resources.Plain(name, res)
}

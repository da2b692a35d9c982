package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
)

// The wake-up row says for each shard at what time all dispatchers shall look for jobs
// that are due. A producer leaves the time of its job there, unless a nearer one stands
// that has not come yet: the look at that one finds the job. A dispatcher that finds
// another time than before looks at once, for it may have missed one between. No safety
// rests on it: as long as a shard has such jobs it is looked at every 30 s.

// markAhead is how far ahead a mark is at most, so that it stands for all that comes
// behind it, and jobs that come one before the other do not write one each.
const markAhead = 10 * time.Minute

func dueMarkOf(shard int) string { return fmt.Sprintf("t%x", shard) }

// markDue leaves the time of a job in the wake-up row, if that is needed.
func (s *store) markDue(ctx context.Context, resource string, due time.Time) {
	i, now := resources.ShardOf(resource), s.table.Clock()
	if most := now.Add(markAhead); due.After(most) {
		due = most
	}
	past := now.Add(s.cfg.ClockSkew) // others, whose clocks are ahead, may have looked already
	s.mu.Lock()
	stands := s.due[i].marked
	s.mu.Unlock()
	if stands.After(past) && !stands.After(due) {
		return
	}
	w := s.table.Core.NewWrite()
	name, at := w.Name(dueMarkOf(i)), ddb.Number(ddb.Seconds(due))
	w.SetTo(dueMarkOf(i), w.Value(at))
	w.If("(attribute_not_exists(" + name + ") OR " + name + " < " + w.Value(ddb.Number(ddb.Seconds(past))) + " OR " + name + " > " + w.Value(at) + ")")
	opt := ddb.Options{NoGrace: true, Single: true, Timeout: ddb.Settle}
	res := s.table.Core.Update(ctx, resources.Update(w, resources.RowKey(wakeUpName, wakeUpName)), opt)
	switch res.Outcome {
	case ddb.Applied:
	case ddb.Condition:
		if due, _ = ddb.Time(res.Image[dueMarkOf(i)]); due.IsZero() {
			return
		}
	default:
		return // the job is enqueued all the same
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.due[i].marked = due
}

// noteMarks takes in what the wake-up row says of each shard.
func (s *store) noteMarks(row ddb.Item) {
	now := s.table.Clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.due {
		var mark time.Time
		if v := row[dueMarkOf(i)]; v != nil {
			mark, _ = ddb.Time(v)
		}
		s.due[i].noteMark(mark, now, s.cfg.ClockSkew)
	}
}

// markRetry is markDue for a job of this process that is to be tried again: whoever runs
// here looks for it, and others need not.
func (s *store) markRetry(ctx context.Context, resource string, due time.Time) {
	here := false
	dispatchers.Range(func(one, _ any) bool {
		d := one.(*dispatcher)
		here = d.s.table.Core.Name == s.table.Core.Name && d.s.serves(resource)
		return !here
	})
	s.noteDue(resource, due)
	if !here {
		s.markDue(ctx, resource, due)
	}
}

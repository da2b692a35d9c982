package jobs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/resources"
)

// The wake-up row says for each shard when a producer last marked it: that jobs
// are enqueued there, from that moment on for markStands. A dispatcher without work reads
// this one row where it would have to query all shards. No safety rests on it: a
// dispatcher looks at every shard at times (see everyShard), also where there is no mark.
const (
	wakeUpName = "BELL" // as tables have it
	markStands = 15 * time.Second
)

// covers reports whether a mark that was made at a time stands for what is enqueued now.
func covers(mark, now time.Time) bool {
	since := now.Sub(mark)
	return since >= 0 && since < markStands
}

// due reports whether a shard must be looked at: whether jobs may have come since the last
// look began, and not only where a mark says so.
func (seen *seenShard) due(mark, now time.Time, poll, skew time.Duration) bool {
	since := now.Sub(seen.looked)
	return seen.busy || since < 0 || since >= everyShard*poll || seen.looked.Before(mark.Add(markStands+skew))
}

// dispatchers are the calls of Run in this process: they hear of its jobs without that row.
var dispatchers sync.Map // of *dispatcher

// wake tells the dispatchers of this process that a resource has a job more. One
// of another table with the same name looks in vain.
func (s *store) wake(resource string) {
	dispatchers.Range(func(one, _ any) bool {
		if d := one.(*dispatcher); d.s.table.Core.Name == s.table.Core.Name {
			d.enqueued(resource)
		}
		return true
	})
}

func markOf(shard int) string { return fmt.Sprintf("s%x", shard) }

// mark marks the shard of a resource, unless this process has done so lately. It
// comes behind the job: a dispatcher that reads it finds the job.
func (s *store) mark(ctx context.Context, resource string) {
	i, now := resources.ShardOf(resource), s.table.Clock()
	s.mu.Lock()
	lately := covers(s.marked[i], now)
	if !lately {
		s.marked[i] = now
	}
	s.mu.Unlock()
	if lately {
		return
	}
	w := s.table.Core.NewWrite()
	w.Set(markOf(i), ddb.Number(ddb.Seconds(now)))
	opt := ddb.Options{NoGrace: true, Single: true, Timeout: ddb.Settle}
	// A copy that comes late must not take back a later one, which stands for more.
	w.If("(attribute_not_exists(" + w.Name(markOf(i)) + ") OR " + w.Name(markOf(i)) + " < " + w.Value(ddb.Number(ddb.Seconds(now))) + ")")
	if res := s.table.Core.Update(ctx, resources.Update(w, resources.RowKey(wakeUpName, wakeUpName)), opt); res.Outcome == ddb.Applied || res.Outcome == ddb.Condition {
		return
	}
	// The job is enqueued all the same: the next one marks the shard again.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked[i] = time.Time{}
}

// marks reads when each shard was marked last, which may be out of date by a moment, and
// takes in the times of jobs. What cannot be read is the zero time.
func (s *store) marks(ctx context.Context) (at [resources.Shards]time.Time, err error) {
	err = s.table.Core.ReadWith(ctx, "GetItem", func(ctx context.Context, o func(*dynamodb.Options)) (any, error) {
		out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.table.Core.Name, Key: resources.RowKey(wakeUpName, wakeUpName)}, o)
		if err != nil {
			return nil, err
		}
		for i := range at {
			if v := out.Item[markOf(i)]; v != nil {
				at[i], _ = ddb.Time(v)
			}
		}
		s.noteMarks(out.Item)
		return out, nil
	})
	return at, err
}

package semaphore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
)

// The bell is a row that says for each shard when a producer last rang for it: that jobs
// are enqueued there, from that moment on for rungFor. A dispatcher without work reads
// this one row where it would have to query all shards. No safety rests on it: a
// dispatcher looks at every shard at times (see everyShard), also where nobody has rung.
const (
	bellName = "BELL"
	rungFor  = 15 * time.Second
)

// dispatchers are the calls of Run in this process: they hear of its jobs without a bell.
var dispatchers sync.Map // of *dispatcher

// wake tells the dispatchers of this process that a resource has a job more. One
// of another table with the same name looks in vain.
func (s *store) wake(resource string) {
	dispatchers.Range(func(one, _ any) bool {
		if d := one.(*dispatcher); d.s.core.Name == s.core.Name {
			d.enqueued(resource)
		}
		return true
	})
}

func rings(shard int) string { return fmt.Sprintf("s%x", shard) }

// ring rings for the shard of a resource, unless this process has done so lately. It
// comes behind the job: a dispatcher that hears it finds the job.
func (s *store) ring(ctx context.Context, resource string) {
	i, now := shardOf(resource), s.clock()
	s.mu.Lock()
	since := now.Sub(s.rung[i])
	lately := since >= 0 && since < rungFor
	if !lately {
		s.rung[i] = now
	}
	s.mu.Unlock()
	if lately {
		return
	}
	w := s.core.NewWrite()
	w.Set(rings(i), ddb.Number(ddb.Seconds(now)))
	opt := ddb.Options{NoGrace: true, Single: true, Timeout: ddb.Settle}
	// A copy that comes late must not take back a later one, which stands for more.
	w.If("(attribute_not_exists(" + w.Name(rings(i)) + ") OR " + w.Name(rings(i)) + " < " + w.Value(ddb.Number(ddb.Seconds(now))) + ")")
	if res := s.core.Update(ctx, update(w, rowKey(bellName, bellName)), opt); res.Outcome == ddb.Applied || res.Outcome == ddb.Condition {
		return
	}
	// The job is enqueued all the same: the next one rings again.
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rung[i] = time.Time{}
}

// heard reads when was rung last for each shard, which may be out of date by a moment.
// What cannot be read is the zero time.
func (s *store) heard(ctx context.Context) (at [shards]time.Time, err error) {
	err = s.core.ReadWith(ctx, "GetItem", func(ctx context.Context, o func(*dynamodb.Options)) (any, error) {
		out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.core.Name, Key: rowKey(bellName, bellName)}, o)
		if err != nil {
			return nil, err
		}
		for i := range at {
			if v := out.Item[rings(i)]; v != nil {
				at[i], _ = ddb.Time(v)
			}
		}
		return out, nil
	})
	return at, err
}

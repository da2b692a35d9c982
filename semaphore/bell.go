package semaphore

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
)

// The bell is a row that says for each shard when a producer last rang for it: that jobs
// are enqueued there, from that moment on for rungFor. A dispatcher without work reads
// this one row where it would have to query all shards. No safety rests on it: a
// dispatcher looks at every shard at times (see watch), also where nobody has rung.
const (
	bellName = "BELL"
	rungFor  = 15 * time.Second
)

func rings(shard int) string { return fmt.Sprintf("s%x", shard) }

// ring rings for the shard of a resource, unless this process has done so lately. It
// comes behind the job: a dispatcher that hears it finds the job.
func (s *store) ring(ctx context.Context, resource string) {
	i, now := shardOf(resource), s.clock()
	s.mu.Lock()
	since := now.Sub(s.rung[i])
	if since < 0 || since >= rungFor {
		s.rung[i] = now
	}
	s.mu.Unlock()
	if since >= 0 && since < rungFor {
		return
	}
	w := s.core.NewWrite()
	w.Set(rings(i), ddb.Number(ddb.Seconds(now)))
	in, err := w.Update(rowKey(bellName, bellName))
	if err == nil && s.core.Update(ctx, in, ddb.Options{NoGrace: true, Single: true, Timeout: ddb.Settle}).Outcome == ddb.Applied {
		return
	}
	// The job is enqueued all the same: the next one rings again.
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rung[i].Equal(now) {
		s.rung[i] = time.Time{}
	}
}

// heard reads when was rung last for each shard, which may be out of date by a moment.
// What cannot be read is the zero time.
func (s *store) heard(ctx context.Context) (at [shards]time.Time, err error) {
	err = s.core.ReadWith(ctx, "GetItem", func(ctx context.Context, o func(*dynamodb.Options)) error {
		out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.core.Name, Key: rowKey(bellName, bellName)}, o)
		if err != nil {
			return err
		}
		for i := range at {
			if v := out.Item[rings(i)]; v != nil {
				at[i], _ = ddb.Time(v)
			}
		}
		return nil
	})
	return at, err
}

// everyShard is after how many times Config.Poll a dispatcher looks at a shard for which
// nobody rang: a ring may be lost with its producer, or have come from a clock that is
// too far behind, and a program of an older version does not ring.
const everyShard = 15

// watch is what one dispatcher knows of the shards.
type watch struct {
	s      *store
	shards [shards]seenShard
}

// seenShard is a shard as it was last looked at.
type seenShard struct {
	survey
	looked time.Time // when that began, by the clock of the store
	busy   bool      // jobs were queued there, or ran
}

// due are the shards that must be looked at now. Where nothing was queued and nothing
// ran, nothing can begin but by an Enqueue, or a Requeue, which rings.
func (w *watch) due(ctx context.Context) (due []int, err error) {
	var rung [shards]time.Time
	if known := !w.shards[0].looked.IsZero(); known {
		if rung, err = w.s.heard(ctx); err != nil {
			return nil, err
		}
	}
	now := w.s.clock()
	for i := range w.shards {
		at := &w.shards[i]
		since := now.Sub(at.looked)
		if at.busy || since < 0 || since >= everyShard*w.s.cfg.Poll || at.looked.Before(rung[i].Add(rungFor+w.s.cfg.ClockSkew)) {
			due = append(due, i)
		}
	}
	return due, nil
}

package jobs

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/dynahold/dynahold/internal/resources"
)

// everyShard is after how many times Config.Poll a dispatcher looks at a shard for which
// there is no mark: it may be lost with its producer, or be of a clock that is
// too far behind, and a program of an older version leaves none.
const everyShard = 15

// seenShard is a shard as a dispatcher last looked at it.
type seenShard struct {
	looked time.Time // when that began, by the clock of the store
	busy   bool      // jobs were queued there, or ran

	// For telemetry.
	queued, running, dead int
	oldest                time.Time            // since when the first job waits; zero: none is known to
	named                 map[string]time.Time // the same of the resources that metrics name
}

// findWork looks at the resources of the shards where there may be work.
func (d *dispatcher) findWork(ctx context.Context) error {
	d.tickAll(ctx)
	due, err := d.due(ctx)
	if err != nil {
		return err
	}
	if err := d.bringAll(ctx); err != nil {
		return err
	}
	// Each dispatcher in an order of its own: in the same they would meet everywhere.
	rand.Shuffle(len(due), func(i, k int) { due[i], due[k] = due[k], due[i] })
	for _, i := range due {
		seen, began := seenShard{looked: d.s.table.Clock()}, d.soFar()
		later := false
		var found []resources.Row
		for r, err := range d.s.table.InShard(ctx, i, resources.Page{Eventual: true}) {
			switch {
			case err != nil && r.Name == "":
				return err
			case !d.s.serves(r.Name):
				// Its jobs are for other programs.
			case err != nil:
				seen.busy = true
				d.leaveAside(ctx, r.Name, err)
			default:
				found = append(found, r)
				later = later || r.Later > 0
				seen.add(d.s, r)
			}
		}
		d.shards[i] = seen
		d.s.noteLater(i, later)
		for _, k := range rand.Perm(len(found)) {
			d.learn(found[k], began)
		}
	}
	d.tell(ctx)
	return nil
}

// due are the shards that must be looked at now. Where nothing was queued and nothing
// ran, nothing can begin but by an Enqueue, or a Requeue, which marks the shard.
func (d *dispatcher) due(ctx context.Context) (due []int, err error) {
	var marks [resources.Shards]time.Time
	if d.looked {
		if marks, err = d.s.marks(ctx); err != nil {
			return nil, err
		}
	}
	now := d.s.table.Clock()
	d.looked = true
	for i := range d.shards {
		if d.s.servesIn(i) && d.shards[i].due(marks[i], now, d.s.cfg.Poll, d.s.cfg.ClockSkew) {
			due = append(due, i)
		}
	}
	return due, nil
}

func (seen *seenShard) add(s *store, r resources.Row) {
	seen.busy = seen.busy || r.Queued > 0 || r.Running > len(r.Permits)
	seen.queued, seen.running, seen.dead = seen.queued+r.Queued, seen.running+r.Running, seen.dead+r.Dead
	if st := s.locals.Get(r.Name); st != nil && r.Queued > 0 {
		st.mu.Lock()
		defer st.mu.Unlock()
		seen.oldest = earlier(seen.oldest, st.oldest)
		if s.named(r.Name) != "" {
			if seen.named == nil {
				seen.named = map[string]time.Time{}
			}
			seen.named[r.Name] = st.oldest
		}
	}
}

// tell adds up, for telemetry, what the last looks at all shards have found.
func (d *dispatcher) tell(ctx context.Context) {
	var all seenShard
	for _, seen := range d.shards {
		all.queued, all.running, all.dead = all.queued+seen.queued, all.running+seen.running, all.dead+seen.dead
		all.oldest = earlier(all.oldest, seen.oldest)
	}
	d.s.table.Core.Observe.Jobs(ctx, all.queued, all.running, all.dead, d.age(all.oldest))
	for _, name := range d.s.cfg.NameResources {
		d.s.table.Core.Observe.Oldest(ctx, name, d.age(d.shards[resources.ShardOf(name)].named[name]))
	}
}

// age is for how long a job waits since a time; zero: none does.
func (d *dispatcher) age(since time.Time) time.Duration {
	if since.IsZero() {
		return 0
	}
	return max(d.s.table.Clock().Sub(since), 0)
}

// earlier is the first of two times, of which zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

package semaphore

import (
	"context"
	"time"
)

// survey adds up, for telemetry, what one look at all resources has found.
type survey struct {
	queued, running, dead int
	oldest                time.Time // zero: none is known to wait
}

func (all *survey) add(st *store, r Resource) {
	all.queued, all.running, all.dead = all.queued+r.Queued, all.running+r.Running, all.dead+r.Dead
	if r.Queued == 0 {
		return
	}
	s := st.enter(r.Name)
	defer st.leave(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.oldest.IsZero() && (all.oldest.IsZero() || s.oldest.Before(all.oldest)) {
		all.oldest = s.oldest
	}
}

// with adds what was found of another shard.
func (all *survey) with(of survey) {
	all.queued, all.running, all.dead = all.queued+of.queued, all.running+of.running, all.dead+of.dead
	if !of.oldest.IsZero() && (all.oldest.IsZero() || of.oldest.Before(all.oldest)) {
		all.oldest = of.oldest
	}
}

func (all *survey) tell(ctx context.Context, st *store) {
	age := time.Duration(0)
	if !all.oldest.IsZero() {
		age = max(st.clock().Sub(all.oldest), 0)
	}
	st.core.Observe.Jobs(ctx, all.queued, all.running, all.dead, age)
}

// sawOldest notes since when the oldest job of a line waits; zero: none does.
func (st *station) sawOldest(since time.Time) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.oldest = since
}

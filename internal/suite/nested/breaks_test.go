package nested_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// Nobody ends by force what he works under: with the context of a hold the call is refused,
// by whichever client, and the hold goes on; the holds of others can be ended.
func TestBreaksInsideTheirOwnHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	locks := rig.Must(mutex.New(w.Client, w.Table+"-locks", mutex.Config{}))(t)
	queue := rig.Must(ticket.New(w.Client, w.Table+"-queue", ticket.Config{}))(t)
	permits := rig.Must(semaphore.New(w.Client, w.Table+"-permits", semaphore.Config{}))(t)
	work := rig.Must(jobs.New[int](w.Client, w.Table+"-permits", jobs.Config{Limit: 2}))(t)
	for _, table := range []interface{ EnsureTable(context.Context) error }{locks, queue, permits} {
		rig.Is(t, table.EnsureTable(t.Context()))
	}
	rig.Is(t, permits.SetLimit(t.Context(), "x", 2))
	other := rig.Must(permits.Acquire(t.Context(), "x"))(t)
	behind := (*ticket.Ticket)(nil)
	cells := 0
	own := func(what string, err error) {
		cells++
		refused(t, what, err, "held")
	}
	rig.Is(t, locks.Do(t.Context(), "x", func(ctx context.Context, l *mutex.Lock) error {
		for _, ctx := range []context.Context{ctx, l.Context()} {
			before := w.Count.Total()
			own("mutex.Break", locks.Break(ctx, "x", l.Token()))
			own("mutex.Break, of another token", locks.Break(ctx, "x", l.Token()-1))
			own("mutex.Release", locks.Release(ctx, "x", l.ID()))
			if sent := w.Count.Total() - before; sent != 0 {
				t.Errorf("%d requests", sent)
			}
		}
		rig.Is(t, locks.Release(ctx, "x", "another"), repo.ErrLocked)
		rig.Is(t, locks.Break(ctx, "another", 1), repo.ErrNotHeld)
		return l.Extend(ctx)
	}))
	rig.Is(t, queue.Do(t.Context(), "x", func(ctx context.Context, turn *ticket.Turn) error {
		behind = rig.Must(queue.Join(ctx, "x"))(t)
		for _, ctx := range []context.Context{ctx, turn.Context()} {
			own("ticket.Break", queue.Break(ctx, "x", turn.Number()))
		}
		rig.Is(t, queue.Break(ctx, "x", behind.Number()))
		return turn.Extend(ctx)
	}))
	rig.Is(t, permits.Do(t.Context(), "x", func(ctx context.Context, p *semaphore.Permit) error {
		for _, ctx := range []context.Context{ctx, p.Context()} {
			own("semaphore.BreakPermit", permits.BreakPermit(ctx, "x", p.ID()))
		}
		rig.Is(t, permits.BreakPermit(ctx, "x", other.ID()))
		return p.Extend(ctx)
	}))
	rig.Must(work.Enqueue(t.Context(), "y", 1, jobs.WithID("a")))(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	rig.Is(t, work.Run(ctx, func(ctx context.Context, j *jobs.Job[int]) error {
		defer stop()
		for _, ctx := range []context.Context{ctx, j.Context()} {
			own("jobs.BreakJob", work.BreakJob(ctx, "y", j.ID(), j.Token()))
		}
		return j.Done(ctx)
	}), nil)
	rig.Is(t, work.BreakJob(t.Context(), "y", "a", 1), repo.ErrNotFound)
	t.Logf("%d calls refused", cells)
}

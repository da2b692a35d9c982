package nested_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// A table is the same one through another client.
func TestCallsInsideAChangeByAnotherClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := *w
	table := func() *repo.Table[thing] {
		return rig.Must(repo.NewTable[thing](rig.Client(), w.Table, repo.TableConfig{}))(t)
	}
	other.open(t, table)
	for name, c := range w.changers() {
		id := w.make(t, "x "+name)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		_, err := c.Update(ctx, key(id), func(ctx context.Context, x *thing) error {
			for nested, call := range all(other.writes(), other.transactions()) {
				refused(t, name+" > "+nested, call(ctx, id), "")
			}
			return more(ctx, x)
		})
		if rig.Is(t, err); ctx.Err() != nil {
			t.Errorf("%s: it waited", name)
		}
		cancel()
		w.has(t, id, 11)
	}
}

// What would wait for the hold of its own context is refused; the hold itself ends with it.
func TestCallsWithTheContextOfAHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, y := w.make(t, "x"), w.make(t, "y")
	held := rig.Must(w.locking.Acquire(t.Context(), key(x)))(t)
	kept := context.WithoutCancel(held.Context())
	before := w.Count.Total()
	for where, ctx := range map[string]context.Context{"": held.Context(), ", outside": txn.Outside(held.Context()), ", without its end": kept} {
		for name, call := range all(w.writes(), w.transactions()) {
			refused(t, name+where, call(ctx, x), "held")
		}
	}
	rig.Equal(t, w.Count.Total()-before, 0, "requests")
	rig.Must(w.locking.Update(held.Context(), key(y), more))(t)
	item := held.Item()
	item.N++
	rig.Must(held.Commit(held.Context(), item))(t)
	rig.Must(w.locking.Update(kept, key(x), more))(t) // it is over
	w.has(t, x, 12)
}

// Nobody waits for a name, an entity or an id that is held where he comes from.
func TestHoldsInsideThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	runs := rig.Must(once.New(w.Client, w.Table+"-once", once.Config{}))(t)
	locks := rig.Must(mutex.New(w.Client, w.Table+"-locks", mutex.Config{}))(t)
	queue := rig.Must(ticket.New(w.Client, w.Table+"-queue", ticket.Config{}))(t)
	permits := rig.Must(semaphore.New(w.Client, w.Table+"-permits", semaphore.Config{}))(t)
	for _, table := range []interface{ EnsureTable(context.Context) error }{runs, locks, queue, permits} {
		rig.Is(t, table.EnsureTable(t.Context()))
	}
	lock := func(ctx context.Context, name string) error {
		l, err := locks.Lock(ctx, name)
		if err == nil {
			err = l.Unlock(ctx)
		}
		return err
	}
	lockAll := func(ctx context.Context, name string) error {
		g, err := locks.LockAll(ctx, "a", name)
		if err == nil {
			err = g.Unlock(ctx)
		}
		return err
	}
	run := func(ctx context.Context, id string) error {
		_, err := once.Do(ctx, runs, id, func(context.Context, once.Run) (int, error) { return 1, nil })
		return err
	}
	turn := func(ctx context.Context, entity string) error {
		return queue.Do(ctx, entity, func(context.Context, *ticket.Turn) error { return nil })
	}
	permit := func(ctx context.Context, resource string) error {
		return permits.Do(ctx, resource, func(context.Context, *semaphore.Permit) error { return nil })
	}
	type calls = map[string]call
	for name, c := range map[string]struct {
		outer func(ctx context.Context, name string, fn func(context.Context)) error
		inner calls
	}{
		"mutex.Do": {func(ctx context.Context, name string, fn func(context.Context)) error {
			return locks.Do(ctx, name, func(ctx context.Context, l *mutex.Lock) error { fn(ctx); fn(l.Context()); return nil })
		}, calls{"Lock": lock, "LockAll": lockAll}},
		"mutex.LockAll": {func(ctx context.Context, name string, fn func(context.Context)) error {
			g, err := locks.LockAll(ctx, name, name+" too")
			if err != nil {
				return err
			}
			fn(g.Context())
			return g.Unlock(ctx)
		}, calls{"Lock": lock, "LockAll": lockAll}},
		"once.Do": {func(ctx context.Context, name string, fn func(context.Context)) error {
			_, err := once.Do(ctx, runs, name, func(ctx context.Context, _ once.Run) (int, error) { fn(ctx); return 1, nil })
			return err
		}, calls{"Do": run}},
		"ticket.Do": {func(ctx context.Context, name string, fn func(context.Context)) error {
			return queue.Do(ctx, name, func(ctx context.Context, turn *ticket.Turn) error { fn(ctx); fn(turn.Context()); return nil })
		}, calls{"Do": turn}},
		"semaphore.Do": {func(ctx context.Context, name string, fn func(context.Context)) error {
			return permits.Do(ctx, name, func(ctx context.Context, p *semaphore.Permit) error { fn(ctx); fn(p.Context()); return nil })
		}, calls{"Do": permit}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		var kept context.Context
		rig.Is(t, c.outer(ctx, "x", func(ctx context.Context) {
			kept = context.WithoutCancel(ctx)
			for what, call := range c.inner {
				refused(t, name+" > "+what, call(ctx, "x"), "held")
				rig.Is(t, call(ctx, "another"))
			}
			rig.Is(t, c.outer(ctx, "within", func(ctx context.Context) { // which may end with what is held only
				ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
				defer cancel()
				for what, call := range c.inner {
					refused(t, name+" > "+name+" > "+what, call(ctx, "x"), "held")
				}
			}))
		}))
		for _, call := range c.inner {
			rig.Is(t, call(kept, "x"))
		}
		if ctx.Err() != nil {
			t.Errorf("%s: it waited", name)
		}
		cancel()
	}
}

// Permits are waited for while there is one more than what the context holds.
func TestPermitsInsidePermits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	permits := rig.Must(semaphore.New(w.Client, w.Table+"-permits", semaphore.Config{}))(t)
	rig.Is(t, permits.EnsureTable(t.Context()))
	rig.Is(t, permits.SetLimit(t.Context(), "room", 2))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	inner := func(context.Context, *semaphore.Permit) error { return nil }
	rig.Is(t, permits.Do(ctx, "room", func(ctx context.Context, _ *semaphore.Permit) error {
		return permits.Do(ctx, "room", func(ctx context.Context, _ *semaphore.Permit) error {
			before := w.Count.Total()
			rig.Is(t, permits.Do(ctx, "room", inner), repo.ErrNested)
			_, err := permits.TryAcquire(ctx, "room")
			rig.Is(t, err, semaphore.ErrBusy)
			if sent := w.Count.Total() - before; sent != 1 {
				t.Errorf("%d requests, want that of TryAcquire", sent)
			}
			rig.Is(t, permits.SetLimit(ctx, "room", 3))
			return nil
		})
	}))
	rig.Is(t, permits.Do(ctx, "room", inner))
	if ctx.Err() != nil {
		t.Error("it waited")
	}
}

// That a caller waits for itself may come out only when the table has refused it: another
// has the permits, or the limit is lower by now, or a job of the resource makes the call.
func TestPermitsThatCannotCome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	open := func() *semaphore.Semaphore {
		return rig.Must(semaphore.New(w.Client, w.Table+"-permits", semaphore.Config{}))(t)
	}
	mine, others := open(), open()
	rig.Is(t, mine.EnsureTable(t.Context()))
	queue := rig.Must(jobs.New[int](w.Client, w.Table+"-permits", jobs.Config{}))(t)
	for name, hold := range map[string]func(ctx context.Context, fn func(context.Context)) error{
		"of another": func(ctx context.Context, fn func(context.Context)) error {
			return others.Do(ctx, "of another", func(ctx context.Context, _ *semaphore.Permit) error { fn(ctx); return nil })
		},
		"lowered": func(ctx context.Context, fn func(context.Context)) error {
			rig.Is(t, mine.SetLimit(ctx, "lowered", 2))
			return mine.Do(ctx, "lowered", func(ctx context.Context, _ *semaphore.Permit) error {
				rig.Is(t, others.SetLimit(ctx, "lowered", 1))
				fn(ctx)
				return nil
			})
		},
		"of a job": func(ctx context.Context, fn func(context.Context)) error {
			rig.Must(queue.Enqueue(ctx, "of a job", 1))(t)
			job := rig.Must(queue.Next(ctx, "of a job"))(t)
			fn(job.Context())
			return job.Done(ctx)
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		take := func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return mine.Do(ctx, name, func(context.Context, *semaphore.Permit) error { return nil })
		}
		var kept context.Context
		rig.Is(t, hold(ctx, func(ctx context.Context) {
			refused(t, name, take(ctx), "held")
			kept = context.WithoutCancel(ctx)
		}))
		rig.Is(t, take(kept))
		cancel()
	}
}

package nested_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A call that writes an item, or touches it in a transaction, is refused inside a change
// of the same item, whatever strategies they are of: at once, before anything is sent.
func TestCallsInsideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	outer := map[string]func(ctx context.Context, id string, change func(context.Context, *thing) error) error{}
	for name, c := range w.changers() {
		outer[name+".Update"] = func(ctx context.Context, id string, change func(context.Context, *thing) error) error {
			_, err := c.Update(ctx, key(id), change)
			return err
		}
		outer[name+".Upsert"] = func(ctx context.Context, id string, change func(context.Context, *thing) error) error {
			_, err := c.Upsert(ctx, key(id), change)
			return err
		}
	}
	for name := range w.views(nil) {
		outer["txn "+name] = func(ctx context.Context, id string, change func(context.Context, *thing) error) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				_, err := w.views(tx)[name].Update(ctx, key(id), change)
				return err
			})
		}
	}
	inner := all(w.writes(), w.transactions())
	n, pairs := 0, 0
	for name, outer := range outer {
		n++
		id := w.make(t, fmt.Sprint("x", n))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		rig.Is(t, outer(ctx, id, func(ctx context.Context, x *thing) error {
			before := w.Count.Total()
			for nested, call := range inner {
				pairs++
				for where, ctx := range map[string]context.Context{"": ctx, ", outside": txn.Outside(ctx)} {
					refused(t, name+" > "+nested+where, call(ctx, id), "")
				}
			}
			rig.Equal(t, w.Count.Total()-before, 0, "%s: requests", name)
			return more(ctx, x)
		}))
		if ctx.Err() != nil {
			t.Errorf("%s: it waited", name)
		}
		cancel()
		w.has(t, id, 11)
	}
	t.Logf("%d pairs of calls", pairs)
}

// What ends a hold writes too.
func TestAHandleInsideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id, runs := w.make(t, "x"), 0
	_, err := w.events.Update(t.Context(), key(id), func(ctx context.Context, x *thing) error {
		if runs++; runs > 1 { // the lock was in the way of the first
			return more(ctx, x)
		}
		held := rig.Must(w.locking.Acquire(t.Context(), key(id)))(t)
		item := held.Item()
		item.N = 100
		_, err := held.Commit(ctx, item)
		refused(t, "Commit", err, "own item")
		refused(t, "Delete", held.Delete(ctx), "own item")
		rig.Is(t, held.Extend(ctx))
		rig.Is(t, held.Release(ctx))
		return more(ctx, x)
	})
	rig.Is(t, err)
	w.has(t, id, 11)
}

// Other items can be changed inside a change, and this one when the change is over.
func TestWhatIsNotInsideAChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range w.changers() {
		x, y := w.make(t, "x "+name), w.make(t, "y "+name)
		var kept context.Context
		_, err := c.Update(t.Context(), key(x), func(ctx context.Context, item *thing) error {
			kept = context.WithoutCancel(ctx)
			if _, err := w.optimistic.Update(ctx, key(y), more); err != nil {
				return err
			}
			if _, err := w.locking.Get(ctx, key(x)); err != nil {
				return err
			}
			return more(ctx, item)
		})
		rig.Is(t, err)
		rig.Must(w.locking.Update(kept, key(x), more))(t)
		w.has(t, x, 12)
		w.has(t, y, 11)
	}
	// An item of the same key in another table is another.
	other := newWorld(t)
	x := w.make(t, "x")
	other.make(t, "x")
	_, err := w.optimistic.Update(t.Context(), key(x), func(ctx context.Context, _ *thing) error {
		_, err := other.optimistic.Update(ctx, repo.Key{Partition: x}, more)
		return err
	})
	rig.Is(t, err)
}

// A hold is not ended by force from inside a change of its item, or where it is held.
func TestBreaksInsideChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	locker := w.locking.Locker()
	for name, c := range w.changers() {
		id := w.make(t, "x "+name)
		_, err := c.Update(t.Context(), key(id), func(ctx context.Context, x *thing) error {
			refused(t, name, locker.Break(ctx, key(id), 1), "")
			return more(ctx, x)
		})
		rig.Is(t, err)
		w.has(t, id, 11)
	}
	held := rig.Must(w.locking.Acquire(t.Context(), key(w.make(t, "y"))))(t)
	refused(t, "hold", locker.Break(held.Context(), held.Key(), held.Token()), "held")
	rig.Is(t, locker.Break(t.Context(), held.Key(), held.Token()))
	rig.Is(t, held.Release(t.Context()), repo.ErrLockLost)
}

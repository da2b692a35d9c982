package txn_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A condition is blamed only where nothing else can have refused the write of its item.
func TestAConditionIsNotBlamedForOthers(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		peer := openPeer(t, w).stores["optimistic"]
		runs := 0
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			v := in(tx)
			if _, err := v.Get(ctx, key(x)); err != nil {
				return err
			}
			if err := v.Apply(ctx, key(x), addN(1), atLeast(1)); err != nil {
				return err
			}
			if _, reads := v.(*optimistic.View[counted]); reads && runs == 1 { // the condition holds, before and after
				rig.Is(t, peer.add(t.Context(), x, 5))
			}
			return v.Apply(ctx, key(y), addN(1))
		}))
		n, err := w.stores["optimistic"].get(t.Context(), x)
		rig.Is(t, err)
		rig.Equal(t, n, 11+5*(runs-1), "after %d runs", runs)
		has(t, w.stores["optimistic"], y, 11)
	})
	t.Run("the ids of operations have to be renewed", func(t *testing.T) {
		w := newWorld(t)
		passed := time.Duration(0)
		r := rig.Must(optimistic.New(rig.Must(repo.NewTable[counted](w.Client, w.Table+"-o", repo.TableConfig{
			Clock: func() time.Time { return time.Now().Add(passed) },
		}))(t), optimistic.Config{}))(t)
		x, y := w.id("x"), w.id("y")
		for _, id := range []string{x, y} {
			rig.Must(r.Create(t.Context(), counted{ID: id, N: 10}))(t)
		}
		for i, passes := range []time.Duration{0, time.Hour, 3 * time.Hour, 2 * time.Hour} {
			passed += passes
			rig.Is(t, txn.Once(string(rune('a'+i))).Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, r.In(tx).Apply(ctx, key(x), addN(1), atLeast(1)))
				_, err := r.In(tx).Update(ctx, key(y), func(_ context.Context, c *counted) error { c.N++; return nil })
				return err
			}))
			has(t, w.stores["optimistic"], x, 11+i)
		}
	})
	t.Run("somebody has joined the queue", func(t *testing.T) {
		w := newWorld(t)
		x, y := w.two(t)
		fair := func(w *world) *pessimistic.Repository[plain] {
			return rig.Must(pessimistic.New(table[plain](t, w.Rig, "-p", false), pessimistic.Config{Lease: lease, Fair: true}))(t)
		}
		r, peer := fair(w), fair(openPeer(t, w).world)
		var waits sync.WaitGroup
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if _, err := r.In(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			if err := r.In(tx).Apply(ctx, key(x), addN(1), atLeast(1)); err != nil {
				return err
			}
			waits.Go(func() {
				held, err := peer.Acquire(t.Context(), key(x))
				if rig.Is(t, err); err == nil {
					rig.Is(t, held.Release(t.Context()))
				}
			})
			for ctx.Err() == nil && len(r.Table().State(w.raw(t, "-p", x)).Waiting) == 0 {
				time.Sleep(time.Millisecond)
			}
			return w.stores["optimistic"].in(tx).add(ctx, y, 1)
		}))
		waits.Wait()
		has(t, w.stores["pessimistic"], x, 11)
	})
	t.Run("a lock that was broken", func(t *testing.T) {
		w := newWorld(t)
		x, y := w.two(t)
		r := rig.Must(pessimistic.New(table[plain](t, w.Rig, "-p", false), pessimistic.Config{Lease: lease}))(t)
		peer := openPeer(t, w)
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if _, err := r.In(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			if err := r.In(tx).Apply(ctx, key(x), addN(1), atLeast(1)); err != nil {
				return err
			}
			l := rig.Must(r.Table().Inspect(t.Context(), key(x)))(t)
			rig.Is(t, peer.locking(t, pessimistic.Config{}).Locker().Break(t.Context(), key(x), l.Token))
			return w.stores["optimistic"].in(tx).add(ctx, y, 1)
		})
		rig.Is(t, err, repo.ErrLockLost)
		if errors.Is(err, repo.ErrCondition) {
			t.Errorf("the condition is blamed: %v", err)
		}
	})
}

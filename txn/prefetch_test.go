package txn_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// inTime runs a closure on items of their own, with a second for what must not hang; a
// request takes 10 ms.
func inTime(t *testing.T, fn func(ctx context.Context, s store, tx *txn.Tx, x, y string) error) {
	t.Helper()
	b := newWorld(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		w := openWorld(t, &rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 5 * time.Millisecond}))}, false)
		s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
		rig.Is(t, s.create(t.Context(), x, 10))
		rig.Is(t, s.create(t.Context(), y, 10))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return fn(ctx, s, tx, x, y) }))
	})
}

// An item that is known may be named twice.
func TestPrefetchOfAnItemNamedTwice(t *testing.T) {
	inTime(t, func(ctx context.Context, s store, tx *txn.Tx, x, _ string) error {
		if _, err := s.in(tx).get(ctx, x); err != nil {
			return err
		}
		return tx.Prefetch(ctx, s.keys(x, x))
	})
}

// Goroutines of a closure may name the same items in any order.
func TestPrefetchesSideBySide(t *testing.T) {
	inTime(t, func(ctx context.Context, s store, tx *txn.Tx, x, y string) error {
		var all sync.WaitGroup
		for _, order := range [][]string{{x, y}, {y, x}} {
			all.Go(func() {
				_, err := s.in(tx).get(ctx, order[0]) // both end at the same time
				rig.Is(t, err)
			})
			all.Go(func() {
				time.Sleep(time.Millisecond)
				rig.Is(t, tx.Prefetch(ctx, s.keys(order...)))
			})
		}
		all.Wait()
		return nil
	})
}

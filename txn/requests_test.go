package txn_test

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// What a transaction costs, by the operations that it sends.
func TestRequests(t *testing.T) {
	type counts = map[string]int
	for _, c := range []struct {
		name, kind string
		run        func(ctx context.Context, tx *txn.Tx, s store, w *world) error
		want       counts
	}{
		{"one item", "optimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.add(ctx, w.id("a"), 1) }, counts{"GetItem": 1, "UpdateItem": 1}},
		{"one item", "nolock", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.add(ctx, w.id("a"), 1) }, counts{"GetItem": 1, "UpdateItem": 1}},
		{"one item", "pessimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.add(ctx, w.id("a"), 1) }, counts{"UpdateItem": 2}},
		{"one item", "fair", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.add(ctx, w.id("a"), 1) }, counts{"UpdateItem": 2}},
		{"one new item", "optimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.create(ctx, w.id("new"), 1) }, counts{"UpdateItem": 1}},
		{"one new item", "pessimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.create(ctx, w.id("new"), 1) }, counts{"UpdateItem": 1}},
		{"one deleted", "optimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.remove(ctx, w.id("a")) }, counts{"GetItem": 1, "DeleteItem": 1}},
		{"one deleted", "pessimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return s.remove(ctx, w.id("a")) }, counts{"UpdateItem": 1, "DeleteItem": 1}},
		{"three items", "optimistic", three, counts{"GetItem": 3, "TransactWriteItems": 1}},
		{"three items", "pessimistic", three, counts{"UpdateItem": 3, "TransactWriteItems": 1}},
		{"three items known beforehand", "optimistic", func(ctx context.Context, tx *txn.Tx, s store, w *world) error {
			if err := tx.Prefetch(ctx, s.keys(w.id("a"), w.id("b")), s.keys(w.id("c"))); err != nil {
				return err
			}
			return three(ctx, tx, s, w)
		}, counts{"TransactGetItems": 1, "TransactWriteItems": 1}},
		{"three items known beforehand", "pessimistic", func(ctx context.Context, tx *txn.Tx, s store, w *world) error {
			if err := tx.Prefetch(ctx, s.keys(w.id("c"), w.id("b"), w.id("a"))); err != nil {
				return err
			}
			return three(ctx, tx, s, w)
		}, counts{"UpdateItem": 3, "TransactWriteItems": 1}},
		{"only reads, of one request", "optimistic", func(ctx context.Context, tx *txn.Tx, s store, w *world) error {
			if err := tx.Prefetch(ctx, s.keys(w.id("a"), w.id("b"))); err != nil {
				return err
			}
			return reads(ctx, s, w)
		}, counts{"TransactGetItems": 1}},
		{"only reads", "optimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return reads(ctx, s, w) }, counts{"GetItem": 2, "TransactGetItems": 1}},
		{"only reads", "pessimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error { return reads(ctx, s, w) }, counts{"UpdateItem": 2, "TransactWriteItems": 1}},
		{"one read", "optimistic", func(ctx context.Context, _ *txn.Tx, s store, w *world) error {
			_, err := s.get(ctx, w.id("a"))
			return err
		}, counts{"GetItem": 1}},
		{"nothing", "optimistic", func(context.Context, *txn.Tx, store, *world) error { return nil }, counts{}},
	} {
		t.Run(fmt.Sprintf("%s, %s", c.name, c.kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.stores[c.kind]
			for _, id := range []string{"a", "b", "c"} {
				rig.Is(t, s.create(t.Context(), w.id(id), 1))
			}
			w.Count.Reset()
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return c.run(ctx, tx, s.in(tx), w) }))
			if got := w.Count.Counts(); !maps.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// Where another transaction is at an item, all that is not locked is read anew by one
// request: what was read before is old, and would be committed in vain. If it is as it was
// the same goes out again, and the closure does not run.
func TestAConflictIsReadOnce(t *testing.T) {
	for kind, want := range map[string]map[string]int{"optimistic": {"GetItem": 3, "TransactGetItems": 1}, "pessimistic": {}} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.stores[kind]
			for _, id := range []string{"a", "b", "c"} {
				rig.Is(t, s.create(t.Context(), w.id(id), 1))
			}
			w.Count.Reset()
			w.Nth("TransactWriteItems", 0, fault.TransactionConflict)
			runs := 0
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { runs++; return three(ctx, tx, s.in(tx), w) }))
			got := w.Count.Counts()
			maps.DeleteFunc(got, func(op string, _ int) bool { return op != "GetItem" && op != "TransactGetItems" })
			if !maps.Equal(got, want) || runs != 1 {
				t.Errorf("%d runs, reads %v, want %v", runs, got, want)
			}
		})
	}
}

func three(ctx context.Context, _ *txn.Tx, s store, w *world) error {
	for _, id := range []string{"a", "b", "c"} {
		if err := s.add(ctx, w.id(id), 1); err != nil {
			return err
		}
	}
	return nil
}

func reads(ctx context.Context, s store, w *world) error {
	if _, err := s.get(ctx, w.id("a")); err != nil {
		return err
	}
	_, err := s.get(ctx, w.id("b"))
	return err
}

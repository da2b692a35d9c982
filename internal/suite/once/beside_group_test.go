package once_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A group of more callers than an item has room for goes over in the middle of itself, and
// its write is lost: what goes to rows are ids of the item, and never those of changes that
// are not written yet. Whoever brings one of them again makes it.
func TestAGroupThatGoesOverIsLost(t *testing.T) {
	const callers = 150
	for _, name := range []string{"optimistic, combining", "optimistic, fair", "pessimistic, combining"} {
		t.Run(name, func(t *testing.T) {
			s := &store{Rig: rig.New(t)}
			s.table = rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = strategies[name](t, s.table, 2*shortLease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			s.filled(t, 130)
			s.stocked(t, 2*callers)
			rig.Must(s.once("m").Update(t.Context(), key, take))(t) // the item has rows beside it
			message := func(i int) string { return fmt.Sprint("message ", i) }

			gate, began := make(chan struct{}), make(chan struct{})
			var all, sent sync.WaitGroup
			call := func(i int, inside func()) {
				_, _ = s.once(message(i)).Update(t.Context(), key, func(ctx context.Context, p *product) error {
					inside()
					return take(ctx, p)
				})
			}
			var once sync.Once
			all.Go(func() { // holds the item while the others gather
				call(0, func() { once.Do(func() { close(began); <-gate }) })
			})
			<-began
			for i := range callers - 1 {
				sent.Add(1)
				all.Go(func() { sent.Done(); call(i+1, func() {}) })
			}
			sent.Wait()
			var lost atomic.Int64
			s.Faults(func(op string, _ int, body []byte) fault.Kind {
				if op == "UpdateItem" && bytes.Contains(body, []byte(`"apple"`)) && bytes.Contains(body, []byte(`"BS"`)) {
					lost.Add(1)
					return fault.DropRequest
				}
				return fault.None
			})
			close(gate)
			all.Wait()
			s.Faults(nil)
			if lost.Load() == 0 {
				t.Error("no write of a group was lost")
			}
			for i := range callers {
				rig.Must(s.once(message(i)).Update(t.Context(), key, take))(t)
			}
			if left := s.stock(t); left != callers-1 {
				t.Errorf("%d are left, want %d", left, callers-1)
			}
		})
	}
}

// The same of the calls of a transaction: each has an id of its own, on one item.
func TestATransactionThatGoesOverIsLost(t *testing.T) {
	const calls = 100
	each(t, func(t *testing.T, s *store) {
		if _, ok := s.plain.(*pessimistic.Repository[product]); ok {
			return // it would wait for the end of its lease, and does the same
		}
		s.filled(t, 130)
		s.stocked(t, 2*calls)
		rig.Must(s.once("m").Update(t.Context(), key, take))(t) // the item has rows beside it
		s.Faults(func(op string, _ int, body []byte) fault.Kind {
			if (op == "UpdateItem" || op == "TransactWriteItems") && bytes.Contains(body, []byte(`"apple"`)) && bytes.Contains(body, []byte(`"BS"`)) {
				return fault.DropRequest
			}
			return fault.None
		})
		err := s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			for i := range calls {
				if _, err := inside(s.once(fmt.Sprint("message ", i)), tx).Update(ctx, key, take); err != nil {
					return err
				}
			}
			return nil
		})
		if err == nil {
			t.Error("no write was lost")
		}
		s.Faults(nil)
		for i := range calls {
			rig.Must(s.once(fmt.Sprint("message ", i)).Update(t.Context(), key, take))(t)
		}
		if left := s.stock(t); left != calls-1 {
			t.Errorf("%d are left, want %d", left, calls-1)
		}
	})
}

// Whole transactions have their ids on every item that they write, and those go over, too.
func TestTransactionsAtAnyRate(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		rig.Must(s.plain.Create(t.Context(), product{SKU: "pear"}))(t)
		s.stocked(t, many)
		moving := func(i int) bool {
			view := txn.Once(fmt.Sprint("whole ", i))
			rig.Is(t, view.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				plain := withoutID(s.plain, tx)
				if _, err := plain.Update(ctx, key, take); err != nil {
					return err
				}
				_, err := plain.Update(ctx, repo.Key{Partition: "pear"}, func(_ context.Context, p *product) error { p.Stock++; return nil })
				return err
			}))
			return view.Repeated()
		}
		for again := range 2 {
			for i := range many {
				if repeated := moving(i); repeated != (again == 1) {
					t.Fatalf("the transaction %d: repeated %v", i, repeated)
				}
			}
		}
		pear := rig.Must(s.table.Get(t.Context(), repo.Key{Partition: "pear"}))(t)
		if s.stock(t) != 0 || pear.Stock != many || entries(s.raw(t)) > 2*64 {
			t.Errorf("%d are left, %d have gone over, the item has %d ids", s.stock(t), pear.Stock, entries(s.raw(t)))
		}
	})
}

// withoutID is a repository inside a transaction.
func withoutID(r repo.Repository[product], tx *txn.Tx) viewInside {
	if o, ok := r.(*optimistic.Repository[product]); ok {
		return o.In(tx)
	}
	return r.(*pessimistic.Repository[product]).In(tx)
}

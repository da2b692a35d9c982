package txn_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/txn"
)

// The answer of a commit is lost: that is no repetition, if it is found out. If it is
// not, the same transaction under the same id finds out.
func TestOnceAnswersTheUnknown(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w, a, b, x, y := twoOf(t, kind, "optimistic")
			w.Nth("TransactWriteItems", 0, fault.LoseResponse)
			o := txn.Once("m")
			rig.Is(t, moveOnce(t.Context(), o, a, b, x, y))
			if o.Repeated() {
				t.Error("its own commit is a repetition")
			}
			for _, lost := range []fault.Kind{fault.LoseResponse, fault.DropRequest} {
				w.Faults(func(op string, _ int, _ []byte) fault.Kind {
					if op == "TransactWriteItems" {
						return lost
					}
					return fault.None
				})
				o = txn.Once(fmt.Sprint(lost))
				err := moveOnce(t.Context(), o, a, b, x, y)
				w.Faults(nil)
				if err != nil {
					rig.Is(t, moveOnce(t.Context(), o, a, b, x, y))
				}
			}
			has(t, a, x, 1)
			has(t, b, y, 19)
		})
	}
}

// A commit without a verdict, whose traces another write has covered, is found by the
// id that it has left.
func TestOnceIsEvidence(t *testing.T) {
	w := newWorld(t)
	r, x, _ := w.events(t)
	other := rig.Must(nolock.New(table[event](t, w.Peer(), "-n", false), nolock.Config{}))(t)
	var n atomic.Int64
	w.Faults(func(string, int, []byte) fault.Kind {
		switch n.Add(1) {
		case 1:
			return fault.LoseResponse
		case 2:
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { // which leaves a ring of its own
				return other.In(tx).Put(ctx, event{ID: x, N: 7, At: 7})
			}))
		}
		return fault.None
	})
	o := txn.Once("m")
	rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return r.In(tx).Put(ctx, event{ID: x, N: 6, At: 6}) }))
	if n.Load() != 2 || !o.Repeated() {
		t.Errorf("%d requests, repeated %v", n.Load(), o.Repeated())
	}
	has(t, w.stores["nolock"], x, 7)
}

// The same where no answer comes any more, and others have covered the commit on all its items.
func TestOnceIsEvidenceWithoutAnAnswer(t *testing.T) {
	w, a, b, x, y := twoOf(t, "optimistic", "optimistic")
	var n atomic.Int64
	w.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op != "TransactWriteItems" {
			return fault.None
		}
		switch n.Add(1) {
		case 1:
			return fault.LoseResponse
		case 2:
			for range 9 {
				s := openWorld(t, w.Peer(), false).stores["optimistic"]
				rig.Is(t, s.add(t.Context(), x, 1))
				rig.Is(t, s.add(t.Context(), y, 1))
			}
		}
		return fault.DropRequest
	})
	rig.Is(t, moveOnce(t.Context(), txn.Once("m"), a, b, x, y))
	w.Faults(nil)
	has(t, a, x, 7+9)
	has(t, b, y, 13+9)
}

// Runs of one id at the same time: one of them is applied.
func TestOnceSideBySide(t *testing.T) {
	for _, pair := range [][2]string{{"optimistic", "nolock"}, {"pessimistic", "optimistic"}, {"fair", "pessimistic, versions"}} {
		t.Run(pair[0]+" and "+pair[1], func(t *testing.T) {
			t.Parallel()
			_, a, b, x, y := twoOf(t, pair[0], pair[1])
			var all sync.WaitGroup
			var repeated atomic.Int64
			for i := range 8 {
				all.Go(func() {
					o := txn.Once("m")
					var err error
					if i%2 == 0 {
						err = moveOnce(t.Context(), o, a, b, x, y)
					} else {
						err = o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
							if err := b.in(tx).add(ctx, y, 3); err != nil {
								return err
							}
							return a.in(tx).add(ctx, x, -3)
						})
					}
					rig.Is(t, err)
					if o.Repeated() {
						repeated.Add(1)
					}
				})
			}
			all.Wait()
			has(t, a, x, 7)
			has(t, b, y, 13)
			rig.Equal(t, repeated.Load(), 7, "repetitions")
		})
	}
}

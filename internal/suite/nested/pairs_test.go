package nested_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Each pair of operations of a strategy, at one item or at two, beside each other and beside
// a read of both beforehand: none fails because of the other's lock, nor stands still.
func TestPairsOfOperationsBesideEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ops, n := w.operations(), 0
	for first, a := range ops {
		for second, b := range ops {
			if a.strategy != b.strategy {
				continue
			}
			for _, same := range []bool{true, false} {
				n++
				x, y := w.make(t, fmt.Sprint("x", n)), w.make(t, fmt.Sprint("y", n))
				other := y
				if same {
					other = x
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				runs := 0
				err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					runs++
					return together(ctx,
						func(ctx context.Context) error { return a.do(ctx, tx, x) },
						func(ctx context.Context) error { return b.do(ctx, tx, other) },
						func(ctx context.Context) error { return tx.Prefetch(ctx, w.keys(a.strategy, x, y, x)) })
				})
				if ctx.Err() != nil || runs > 3 || !same && err != nil {
					t.Errorf("%s | %s, same item: %v: %d runs, %v", first, second, same, runs, err)
				}
				cancel()
				for _, wrong := range []error{repo.ErrLocked, repo.ErrLockLost, repo.ErrLockExpired, repo.ErrOutcomeUnknown, repo.ErrNested, repo.ErrCondition} {
					if errors.Is(err, wrong) {
						t.Errorf("%s | %s: %v", first, second, err)
					}
				}
			}
		}
	}
	t.Logf("%d pairs", n)
}

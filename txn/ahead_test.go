package txn_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Who is the next to have the lock reads what else it needs while the one before has
// it; and once more if that took so long that others have written since.
func TestTheNextReadsAhead(t *testing.T) {
	for name, c := range map[string]struct {
		wait  time.Duration
		reads int
	}{"at once": {0, 1}, "after a while": {time.Second, 2}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, p, other *process) {
				s, o := p.stores["pessimistic"], p.stores["optimistic"]
				w, x, y := p.id("w"), p.id("x"), p.id("y")
				rig.Is(t, errors.Join(s.create(t.Context(), w, 10), s.create(t.Context(), x, 10), o.create(t.Context(), y, 10)))
				locker := rig.Must(lockedread.New(table[plain](t, other.Rig, "-p", false), lockedread.Config{}))(t)
				elsewhere := rig.Must(locker.Acquire(t.Context(), key(x)))(t)
				p.Count.Reset()
				held, gate := make(chan struct{}), make(chan struct{})
				var done sync.WaitGroup
				done.Go(func() {
					rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
						err := s.in(tx).add(ctx, x, 1)
						close(held)
						<-gate
						return err
					}))
				})
				time.Sleep(time.Second)
				done.Go(func() {
					rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
						if err := tx.Prefetch(ctx, o.keys(y), s.keys(x, w)); err != nil {
							return err
						}
						return errors.Join(s.in(tx).add(ctx, w, 1), s.in(tx).add(ctx, x, 1), o.in(tx).add(ctx, y, 1))
					}))
				})
				time.Sleep(time.Second)
				rig.Equal(t, p.Count.Count("GetItem"), 0, "reads while the lock is elsewhere")
				rig.Is(t, elsewhere.Release(t.Context()))
				<-held
				synctest.Wait()
				rig.Equal(t, p.Count.Count("GetItem"), 1, "reads while the one before has the lock")
				time.Sleep(c.wait)
				if c.wait > 0 {
					rig.Is(t, other.stores["optimistic"].add(t.Context(), y, 1))
				}
				close(gate)
				done.Wait()
				has(t, other.stores["pessimistic"], x, 12)
				has(t, other.stores["optimistic"], y, 10+c.reads)
				if reads, commits := p.Count.Count("GetItem"), p.Count.Count("TransactWriteItems"); reads != c.reads || commits != 1 {
					t.Errorf("%d reads, %d commits", reads, commits)
				}
			})
		})
	}
}

// A lock that is there at once makes nothing stale.
func TestWithoutWaitingNothingIsStale(t *testing.T) {
	inBubble(t, func(t *testing.T, p, _ *process) {
		s, o, x, y := p.stores["pessimistic"], p.stores["optimistic"], p.id("x"), p.id("y")
		rig.Is(t, errors.Join(s.create(t.Context(), x, 10), o.create(t.Context(), y, 10)))
		p.Count.Reset()
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, tx.Prefetch(ctx, o.keys(y)))
			time.Sleep(time.Minute / 4)
			return errors.Join(s.in(tx).add(ctx, x, 1), o.in(tx).add(ctx, y, 1))
		}))
		rig.Equal(t, p.Count.Count("GetItem"), 1, "reads")
	})
}

// Who holds a lock does not sleep after the first conflicts: others wait for it.
func TestAHolderDoesNotSleepAfterAConflict(t *testing.T) {
	inBubble(t, func(t *testing.T, p, _ *process) {
		s, x, y := p.stores["pessimistic"], p.id("x"), p.id("y")
		rig.Is(t, errors.Join(s.create(t.Context(), x, 10), s.create(t.Context(), y, 10)))
		conflicts := 0
		script := func(op string, _ int, _ []byte) fault.Kind {
			if op == "TransactWriteItems" && conflicts < 2 {
				conflicts++
				return fault.TransactionConflict
			}
			return fault.None
		}
		p.broken.Store(&script)
		began := time.Now()
		rig.Is(t, adds(t.Context(), s, txn.Config{Wait: repo.Wait{Min: time.Second, Max: 2 * time.Second}}, x, y))
		if took := time.Since(began); conflicts != 2 || took > 0 {
			t.Errorf("%v after %d conflicts", took, conflicts)
		}
	})
}

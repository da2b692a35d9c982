package txn_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A commit that is throttled met nobody.
func TestAThrottledCommitIsNoConflict(t *testing.T) {
	b := newWorld(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var broken atomic.Bool
		w := openWorld(t, &rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(network), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if broken.Load() && op == "TransactWriteItems" {
				return fault.Throttle
			}
			return fault.None
		}))}, false)
		p, x, y := w.stores["pessimistic"], w.id("x"), w.id("y")
		rig.Is(t, p.create(t.Context(), x, 10))
		rig.Is(t, p.create(t.Context(), y, 10))
		broken.Store(true)
		err := txn.Config{Attempts: 2}.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			return errors.Join(p.in(tx).add(ctx, x, 1), p.in(tx).add(ctx, y, 1))
		})
		if errors.Is(err, repo.ErrConflict) {
			t.Errorf("a conflict: %v", err)
		}
		if throttled := (*types.ProvisionedThroughputExceededException)(nil); !errors.As(err, &throttled) {
			t.Errorf("not throttled: %v", err)
		}
		synctest.Wait()
	})
}

// What a transaction gives back after a commit without an answer has 3 s together, behind
// those of the commit.
func TestATransactionInDoubtEndsWithItsContext(t *testing.T) {
	b := newWorld(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var gone atomic.Bool
		wire := &rig.Mortal{Next: network, Lost: func(op, _ string) (before, after bool) {
			if op == "TransactWriteItems" {
				gone.Store(true)
			}
			return gone.Load(), false
		}}
		w := openWorld(t, &rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(wire))}, false)
		p := w.stores["pessimistic"]
		var ids []string
		for _, name := range []string{"a", "b", "c", "d"} {
			ids = append(ids, w.id(name))
			rig.Is(t, p.create(t.Context(), w.id(name), 10))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range ids {
				if err := p.in(tx).add(ctx, id, 1); err != nil {
					return err
				}
			}
			return nil
		})
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("it ended %v after its context", took-time.Second)
		}
		synctest.Wait()
	})
}

// Where nothing answers from some request on, a call ends as soon behind its context as
// docs/protocol.md and the advice for functions with a time-out say.
func TestACallEndsSoonBehindItsContext(t *testing.T) {
	const left = time.Second
	for name, within := range map[string]time.Duration{"optimistic": 3 * time.Second, "nolock": 3 * time.Second, "pessimistic": 8 * time.Second, "mixed": 8 * time.Second} {
		for answers := range int32(5) {
			b := newWorld(t)
			rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
				sent, wire := atomic.Int32{}, &rig.Mortal{Next: network}
				w := openWorld(t, &rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(wire))}, false)
				for strategy, s := range w.stores {
					rig.Is(t, s.create(t.Context(), w.id(strategy), 10))
				}
				wire.Lost = func(string, string) (before, after bool) { return sent.Add(1) > answers, false }
				ctx, cancel := context.WithTimeout(t.Context(), left)
				defer cancel()
				began := time.Now()
				call := func() error { return w.stores[name].add(ctx, w.id(name), 1) }
				if name == "mixed" {
					call = func() error {
						return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
							return errors.Join(w.stores["optimistic"].in(tx).add(ctx, w.id("optimistic"), 1), w.stores["pessimistic"].in(tx).add(ctx, w.id("pessimistic"), 1))
						})
					}
				}
				if err, took := call(), time.Since(began)-left; took > within {
					t.Errorf("%s, %d answers: it ended %v behind its context: %v", name, answers, took, err)
				}
				synctest.Wait()
			})
		}
	}
}

package txn_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// A transaction leaves one id on all its items. That others have written over it on one of
// them says nothing of a write that is bound to it on another: that one is not made again.
func TestAnotherItemIsNoEvidence(t *testing.T) {
	for _, kind := range []string{"optimistic", "nolock"} {
		for _, together := range []bool{false, true} {
			t.Run(kind+map[bool]string{true: ", in a transaction"}[together], func(t *testing.T) {
				w := newWorld(t)
				s, peers := w.stores[kind], []store{}
				for range 9 {
					peers = append(peers, openWorld(t, w.Peer(), false).stores[kind])
				}
				add := func(ctx context.Context, s store, ids ...string) error {
					return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
						for _, id := range ids {
							if err := s.in(tx).add(ctx, id, 1); err != nil {
								return err
							}
						}
						return nil
					})
				}
				a, b, c := w.id("a"), w.id("b"), w.id("c")
				for _, id := range []string{a, b, c} {
					rig.Is(t, s.create(t.Context(), id, 0))
				}
				rig.Is(t, add(t.Context(), s, a, b, c))
				var writes atomic.Int64
				var shown atomic.Bool
				w.Faults(func(op string, _ int, _ []byte) fault.Kind {
					if op != "UpdateItem" && op != "TransactWriteItems" {
						return fault.None
					}
					switch writes.Add(1) {
					case 1:
						return fault.LoseResponse
					case 2:
						rig.Is(t, peers[0].add(t.Context(), b, 1))
						for _, peer := range peers { // nothing of the write is in sight any more
							rig.Is(t, peer.add(t.Context(), a, 1))
							rig.Is(t, peer.add(t.Context(), c, 1))
						}
						go func() {
							_, err := s.get(context.Background(), b)
							rig.Is(t, err)
							shown.Store(true)
						}()
					}
					if !shown.Load() || together && writes.Load() < 20 {
						return fault.DropRequest
					}
					return fault.None
				})
				var err error
				if together {
					err = add(t.Context(), s, a, c)
				} else {
					err = s.add(t.Context(), a, 1)
				}
				w.Faults(nil)
				if err != nil {
					rig.Is(t, err, repo.ErrOutcomeUnknown)
				}
				has(t, s, a, 11)
			})
		}
	}
}

// An item that was deleted and made anew keeps nothing of what was written before, whatever
// its version and its writers are like: a commit without an answer is not made again on it.
func TestAnotherLifeIsNoEvidence(t *testing.T) {
	for name, change := range map[string]func(context.Context, store, string) error{
		"Update": func(ctx context.Context, s store, id string) error { return s.add(ctx, id, 1) },
		"Delete": func(ctx context.Context, s store, id string) error { return s.remove(ctx, id) },
	} {
		for _, items := range []int{1, 2} {
			t.Run(fmt.Sprint(name, " of ", items), func(t *testing.T) {
				w := newWorld(t)
				s, peer := w.stores["optimistic"], openWorld(t, w.Peer(), false).stores["optimistic"]
				ids := []string{w.id("a"), w.id("b")}[:items]
				for _, id := range ids {
					rig.Is(t, s.create(t.Context(), id, 0))
					rig.Is(t, s.add(t.Context(), id, 1))
				}
				var writes atomic.Int64
				w.Faults(func(op string, _ int, _ []byte) fault.Kind {
					if op != "UpdateItem" && op != "DeleteItem" && op != "TransactWriteItems" {
						return fault.None
					}
					n := writes.Add(1)
					if n == 1 {
						return fault.LoseResponse
					}
					for _, id := range ids {
						if n > 2 {
							break
						}
						_ = peer.remove(t.Context(), id) // if it is there
						rig.Is(t, peer.create(t.Context(), id, 0))
						for range 9 { // eight are in sight, and the version has moved by eight
							rig.Is(t, peer.add(t.Context(), id, 1))
						}
					}
					if items > 1 { // then they are looked at
						return fault.DropRequest
					}
					return fault.None
				})
				err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					for _, id := range ids {
						if err := change(ctx, s.in(tx), id); err != nil {
							return err
						}
					}
					return nil
				})
				w.Faults(nil)
				if err != nil {
					rig.Is(t, err, repo.ErrOutcomeUnknown)
				}
				for _, id := range ids {
					has(t, s, id, 9)
				}
			})
		}
	}
}

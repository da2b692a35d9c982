package txn_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// each runs a test for every pair of strategies, on two items of 10.
func each(t *testing.T, test func(t *testing.T, w *world, a, b store, x, y string)) {
	for _, one := range kinds {
		for _, other := range kinds {
			t.Run(one+" and "+other, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				a, b, x, y := w.stores[one], w.stores[other], w.id("x"), w.id("y")
				rig.Is(t, a.create(t.Context(), x, 10))
				rig.Is(t, b.create(t.Context(), y, 10))
				w.Count.Reset()
				test(t, w, a, b, x, y)
			})
		}
	}
}

// has fails the test unless an item has n, or is not there for -1.
func has(t *testing.T, s store, id string, want int) {
	t.Helper()
	n, err := s.get(t.Context(), id)
	if errors.Is(err, repo.ErrNotFound) {
		n, err = -1, nil
	}
	if err != nil || n != want {
		t.Errorf("item %q has %d (%v), want %d", id, n, err, want)
	}
}

func TestTransfer(t *testing.T) {
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if err := a.in(tx).add(ctx, x, -3); err != nil {
				return err
			}
			return b.in(tx).add(ctx, y, 3)
		})
		rig.Is(t, err)
		if n := w.Count.Total(); n != 3 || w.Count.Count("TransactWriteItems") != 1 {
			t.Errorf("%v requests", w.Count.Counts())
		}
		has(t, a, x, 7)
		has(t, b, y, 13)
		// Nothing of it is left in anybody's way.
		rig.Is(t, a.add(t.Context(), x, 1))
		rig.Is(t, b.add(t.Context(), y, 1))
		has(t, a, x, 8)
	})
}

// What a transaction has written it sees, through every method.
func TestOwnWrites(t *testing.T) {
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		z, u := w.id("z"), w.id("u")
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			a, b := a.in(tx), b.in(tx)
			check := func(s store, id string, want int) error {
				n, err := s.get(ctx, id)
				if want < 0 && errors.Is(err, repo.ErrNotFound) {
					return nil
				}
				if err == nil && n != want {
					return fmt.Errorf("item %q has %d, want %d", id, n, want)
				}
				return err
			}
			return errors.Join(
				a.add(ctx, x, 1), a.add(ctx, x, 1), check(a, x, 12),
				a.create(ctx, z, 5), a.add(ctx, z, 1), check(a, z, 6),
				a.create(ctx, u, 5), a.remove(ctx, u), check(a, u, -1),
				b.upsert(ctx, y, 2), check(b, y, 12), b.remove(ctx, y), check(b, y, -1),
			)
		})
		rig.Is(t, err)
		has(t, a, x, 12)
		has(t, a, z, 6)
		has(t, a, u, -1)
		has(t, b, y, -1)
	})
}

var errStop = errors.New("stop")

// An error of the closure, or a panic, writes nothing and holds nothing.
func TestNothingIsWritten(t *testing.T) {
	each(t, func(t *testing.T, _ *world, a, b store, x, y string) {
		change := func(ctx context.Context, tx *txn.Tx) {
			rig.Is(t, a.in(tx).add(ctx, x, 1))
			rig.Is(t, b.in(tx).remove(ctx, y))
		}
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { change(ctx, tx); return errStop })
		if err != errStop { //nolint:errorlint // as it is
			t.Errorf("error %v", err)
		}
		func() {
			defer func() {
				if recover() != any(errStop) {
					t.Error("no panic")
				}
			}()
			_ = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { change(ctx, tx); panic(errStop) })
		}()
		rig.Is(t, a.add(t.Context(), x, 1)) // at once: nobody holds it
		rig.Is(t, b.add(t.Context(), y, 1))
		has(t, a, x, 11)
		has(t, b, y, 11)
	})
}

// What is missing, and what is there already, is an error inside the closure, which
// may go on; what it concluded from it holds when the transaction is applied.
func TestMissingAndThere(t *testing.T) {
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		z := w.id("z")
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			a, b := a.in(tx), b.in(tx)
			rig.Is(t, a.add(ctx, z, 1), repo.ErrNotFound)
			rig.Is(t, a.remove(ctx, z), repo.ErrNotFound)
			if err := b.create(ctx, y, 1); err == nil {
				// It may be found out by the commit only, which runs this again.
				return a.add(ctx, x, 100)
			} else if !errors.Is(err, repo.ErrExists) {
				return err
			}
			return a.create(ctx, z, 4)
		})
		rig.Is(t, err)
		has(t, a, x, 10)
		has(t, a, z, 4)
		has(t, b, y, 10)
	})
}

// Others write between the run and its commit: it runs again, on what they wrote.
func TestConflict(t *testing.T) {
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		peer := openPeer(t, w)
		other := peer.of(w, b)
		runs := 0
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			if err := a.in(tx).add(ctx, x, 1); err != nil {
				return err
			}
			n, err := b.in(tx).get(ctx, y)
			if err != nil {
				return err
			}
			if runs == 1 && !peer.locks(b, w) {
				rig.Is(t, other.add(t.Context(), y, 1))
			}
			return a.in(tx).add(ctx, x, n)
		})
		rig.Is(t, err)
		if peer.locks(b, w) {
			has(t, a, x, 21)
		} else {
			has(t, a, x, 22)
		}
	})
}

// peer is another process.
type peer struct{ *world }

func openPeer(t *testing.T, w *world) peer { return peer{openWorld(t, w.Peer(), false)} }

// of is the peer's store of the kind of s.
func (p peer) of(w *world, s store) store { return p.stores[p.kind(w, s)] }

func (p peer) kind(w *world, s store) string {
	for _, kind := range kinds {
		if sameStore(w.stores[kind], s) {
			return kind
		}
	}
	return ""
}

// locks reports whether what s has read cannot be written by others.
func (p peer) locks(s store, w *world) bool {
	kind := p.kind(w, s)
	return kind != "optimistic" && kind != "nolock"
}

func sameStore(a, b store) bool { return a.keys("x").Table() == b.keys("x").Table() }

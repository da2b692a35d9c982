package txn_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// An error that a closure has kept from another transaction, which had found its id, does
// not say that this one was applied.
func TestAnErrorKeptFromATransactionThatWasMade(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	var kept error
	for range 2 {
		rig.Is(t, txn.Once("one").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			kept = s.in(tx).add(ctx, x, 1)
			return kept
		}))
	}
	if kept == nil {
		t.Fatal("the second run has not found the id")
	}
	other := txn.Once("other")
	err := other.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		return errors.Join(s.in(tx).create(ctx, y, 1), kept)
	})
	if err == nil || other.Repeated() {
		t.Errorf("error %v, repeated %v, though nothing was written", err, other.Repeated())
	}
	has(t, s, y, -1)
}

// What a closure says of another call is no verdict on the transaction.
func TestAClosureReturnsAnotherCallsError(t *testing.T) {
	w := newWorld(t)
	s, x := w.stores["optimistic"], w.id("x")
	for _, of := range []error{repo.ErrOutcomeUnknown, repo.ErrDone} {
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			return errors.Join(s.in(tx).create(ctx, x, 1), of)
		})
		rig.Is(t, err, of)
		if v := repo.VerdictOf(err); v != repo.NotWritten {
			t.Errorf("%v: %v", of, v)
		}
	}
	has(t, s, x, -1)
}

// Nor does one that a closure has kept from an earlier run of its own ask for another one.
func TestAnErrorKeptFromARunThatBeganAnew(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	s, peer := w.stores["pessimistic"], openPeer(t, w).locking(t, pessimistic.Config{})
	held := rig.Must(peer.Acquire(t.Context(), key(x)))(t)
	runs := 0
	var kept error
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		switch runs++; runs {
		case 1:
			rig.Is(t, s.in(tx).add(ctx, y, 1))
			kept = s.in(tx).add(ctx, x, 1) // it is to be waited for with empty hands
			rig.Is(t, held.Release(t.Context()))
		case 2:
		default:
			return nil
		}
		return kept
	})
	if kept == nil || err == nil || runs != 2 {
		t.Errorf("%d runs, %v, where %v was kept", runs, err, kept)
	}
}

// A change that fails is none, of an item that is made as well, whatever the closure does then.
func TestAChangeThatFailsIsNone(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), x, 10))
	errFails := errors.New("it fails")
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		for _, id := range []string{x, y} {
			_, err := s.in(tx).(of[counted]).Upsert(ctx, key(id), func(_ context.Context, c *counted) error {
				c.N = 7
				return errFails
			})
			rig.Is(t, err, errFails)
		}
		return nil
	}))
	has(t, s, x, 10)
	has(t, s, y, -1)
}

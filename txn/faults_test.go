package txn_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// move moves 3 from one item to another.
func move(ctx context.Context, a, b store, x, y string) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if err := a.in(tx).add(ctx, x, -3); err != nil {
			return err
		}
		return b.in(tx).add(ctx, y, 3)
	})
}

// verdict fails the test unless what a transfer said is true: both items are
// written, or none.
func verdict(t *testing.T, err error, a, b store, x, y string) {
	t.Helper()
	n, errA := a.get(t.Context(), x)
	m, errB := b.get(t.Context(), y)
	rig.Is(t, errA)
	rig.Is(t, errB)
	applied := n == 7 && m == 13
	switch {
	case !applied && (n != 10 || m != 10):
		t.Errorf("the items have %d and %d after %v", n, m, err)
	case err == nil && !applied:
		t.Error("not applied, without an error")
	case err != nil && !errors.Is(err, repo.ErrOutcomeUnknown) && applied:
		t.Errorf("applied, with %v", err)
	}
}

// Every fault on every request, once: the transfer is applied, once, and the call
// says so; or nothing could be done about it, and it says that.
func TestOneFault(t *testing.T) {
	t.Parallel()
	pairs := rig.Share([][2]string{{"optimistic", "pessimistic"}, {"nolock", "fair"}, {"pessimistic, versions", "pessimistic"}}, allPairs())
	for _, pair := range pairs {
		for nth := range 3 {
			t.Run(fmt.Sprintf("%s and %s, request %d", pair[0], pair[1], nth), func(t *testing.T) {
				t.Parallel()
				for _, kind := range fault.AllKinds() {
					w := newWorld(t)
					a, b, x, y := w.stores[pair[0]], w.stores[pair[1]], w.id("x"), w.id("y")
					rig.Is(t, a.create(t.Context(), x, 10))
					rig.Is(t, b.create(t.Context(), y, 10))
					var n atomic.Int64
					w.Faults(func(string, int, []byte) fault.Kind {
						if int(n.Add(1)) == nth+1 {
							return kind
						}
						return fault.None
					})
					err := move(t.Context(), a, b, x, y)
					w.Faults(nil)
					w.Net.Wait()
					if err != nil {
						t.Errorf("%v: %v", kind, err)
					}
					verdict(t, err, a, b, x, y)
				}
			})
		}
	}
}

func allPairs() (pairs [][2]string) {
	for _, one := range kinds {
		for _, other := range kinds {
			pairs = append(pairs, [2]string{one, other})
		}
	}
	return pairs
}

// The same fault on everything from one request on: the call says what became of
// it, and what it holds is given back when requests pass again, or ends with its
// lease.
func TestFaultsWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, pair := range rig.Share([][2]string{{"optimistic", "nolock"}, {"pessimistic", "optimistic"}}, allPairs()) {
		for nth := range 3 {
			for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Throttle, fault.TransactionConflict, fault.Refuse} {
				t.Run(fmt.Sprintf("%s and %s, from request %d, %v", pair[0], pair[1], nth, kind), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					a, b, x, y := w.stores[pair[0]], w.stores[pair[1]], w.id("x"), w.id("y")
					rig.Is(t, a.create(t.Context(), x, 10))
					rig.Is(t, b.create(t.Context(), y, 10))
					var n atomic.Int64
					w.Faults(func(string, int, []byte) fault.Kind {
						if int(n.Add(1)) > nth {
							return kind
						}
						return fault.None
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					err := move(ctx, a, b, x, y)
					w.Faults(nil)
					w.Net.Wait()
					if err == nil {
						t.Error("no error")
					}
					verdict(t, err, a, b, x, y)
				})
			}
		}
	}
}

// A transaction whose answers are all lost, of which nobody has written since, is
// applied: it is found by its id when one answer arrives.
func TestEvidenceOnOneItem(t *testing.T) {
	w := newWorld(t)
	a, b, x, y := w.stores["optimistic"], w.stores["nolock"], w.id("x"), w.id("y")
	rig.Is(t, a.create(t.Context(), x, 10))
	rig.Is(t, b.create(t.Context(), y, 10))
	w.Nth("TransactWriteItems", 0, fault.LoseResponse)
	rig.Is(t, move(t.Context(), a, b, x, y))
	verdict(t, nil, a, b, x, y)
	rig.Equal(t, w.Count.Count("TransactWriteItems"), 2, "commits")
}

// whileCommitsMeet runs something while every commit of a transaction meets a fault.
func (w *world) whileCommitsMeet(kind fault.Kind, run func() error) error {
	w.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "TransactWriteItems" {
			return kind
		}
		return fault.None
	})
	defer w.Faults(nil)
	return run()
}

// A commit that never gets an answer is decided by the release of a lock that it
// would have ended.
func TestReleaseTells(t *testing.T) {
	for kind, applied := range map[fault.Kind]bool{fault.LoseResponse: true, fault.DropRequest: false} {
		w := newWorld(t)
		a, b, x, y := w.stores["optimistic"], w.stores["pessimistic"], w.id("x"), w.id("y")
		rig.Is(t, a.create(t.Context(), x, 10))
		rig.Is(t, b.create(t.Context(), y, 10))
		err := w.whileCommitsMeet(kind, func() error { return move(t.Context(), a, b, x, y) })
		if (err == nil) != applied || errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("%v: error %v", kind, err)
		}
		verdict(t, err, a, b, x, y)
	}
}

// So is one that deletes what it has locked: the release finds an item gone that nobody else
// could delete.
func TestReleaseTellsOfDeletes(t *testing.T) {
	for kind, applied := range map[fault.Kind]bool{fault.LoseResponse: true, fault.DropRequest: false} {
		w := newWorld(t)
		a, b, x, y := w.stores["pessimistic"], w.stores["fair"], w.id("x"), w.id("y")
		rig.Is(t, a.create(t.Context(), x, 10))
		rig.Is(t, b.create(t.Context(), y, 10))
		err := w.whileCommitsMeet(kind, func() error {
			return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				return errors.Join(a.in(tx).remove(ctx, x), b.in(tx).remove(ctx, y))
			})
		})
		if (err == nil) != applied || errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("%v: error %v", kind, err)
		}
		want := map[bool]int{true: -1, false: 10}[applied]
		has(t, a, x, want)
		has(t, b, y, want)
	}
}

// loseAnswers loses the answers of all commits, and of the reads after the first of
// them where nothing is to be shown.
func (w *world) loseAnswers(shown bool) {
	var sent atomic.Bool
	w.Faults(func(op string, _ int, _ []byte) fault.Kind {
		switch {
		case op == "TransactWriteItems":
			sent.Store(true)
			return fault.LoseResponse
		case op == "GetItem" && sent.Load() && !shown:
			return fault.LoseResponse
		}
		return fault.None
	})
}

// A commit whose first attempt was lost, and that is then refused by an item that proves
// nothing against it, was not applied if the lock that it would have ended is in place. It was
// refused as any other: the closure runs again.
func TestARefusalInDoubt(t *testing.T) {
	for _, kind := range []string{"pessimistic", "pessimistic, versions", "fair"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			peer := openWorld(t, w.Peer(), false).stores["optimistic"]
			a, b, x, y := w.stores[kind], w.stores["optimistic"], w.id("x"), w.id("y")
			rig.Is(t, a.create(t.Context(), x, 0))
			var commits atomic.Int64
			w.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op == "TransactWriteItems" && commits.Add(1) == 1 {
					rig.Is(t, peer.create(t.Context(), y, 10))
					return fault.DropRequest
				}
				return fault.None
			})
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if err := a.in(tx).add(ctx, x, 1); err != nil {
					return err
				}
				return b.in(tx).upsert(ctx, y, 1)
			}))
			has(t, a, x, 1)
			has(t, b, y, 11)
		})
	}
}

// One item that shows the transaction's id is evidence for all.
func TestAnItemShowsWhatNoAnswerTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, x, y := w.stores["optimistic"], w.stores["nolock"], w.id("x"), w.id("y")
	rig.Is(t, a.create(t.Context(), x, 10))
	rig.Is(t, b.create(t.Context(), y, 10))
	w.loseAnswers(true)
	rig.Is(t, move(t.Context(), a, b, x, y))
	w.Faults(nil)
	from, _ := a.get(t.Context(), x)
	to, _ := b.get(t.Context(), y)
	if from+to != 20 || from == 10 {
		t.Errorf("%d and %d after a transfer that was applied", from, to)
	}
}

// Where nothing tells, the error names every item.
func TestUnknown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, x, y := w.stores["optimistic"], w.stores["nolock"], w.id("x"), w.id("y")
	rig.Is(t, a.create(t.Context(), x, 10))
	rig.Is(t, b.create(t.Context(), y, 10))
	w.loseAnswers(false)
	err := move(t.Context(), a, b, x, y)
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	var failed *txn.Error
	if !errors.As(err, &failed) || len(failed.Failed) != 2 || failed.Failed[0].Key != key(x) || failed.Failed[1].Key != key(y) {
		t.Errorf("failed: %+v", failed)
	}
	for _, f := range failed.Failed {
		rig.Is(t, f.Err, repo.ErrOutcomeUnknown)
	}
}

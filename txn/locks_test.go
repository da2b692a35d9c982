package txn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
	"github.com/dynahold/dynahold/txn"
)

// locking is a repository of items without a version, of a process.
func (w *world) locking(t *testing.T, cfg pessimistic.Config) *pessimistic.Repository[plain] {
	t.Helper()
	return rig.Must(pessimistic.New(table[plain](t, w.Rig, "-p", false), cfg))(t)
}

// two makes two locked items and one with a version.
func (w *world) two(t *testing.T) (x, y string) {
	t.Helper()
	x, y = w.id("x"), w.id("y")
	rig.Is(t, w.stores["pessimistic"].create(t.Context(), x, 10))
	rig.Is(t, w.stores["pessimistic"].create(t.Context(), y, 10))
	rig.Is(t, w.stores["optimistic"].create(t.Context(), y, 10))
	return x, y
}

// An item that another holds is waited for with empty hands where it comes before
// one that the transaction holds: who holds it may want ours.
func TestOutOfOrder(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	mine, peer := w.locking(t, pessimistic.Config{}), openPeer(t, w).locking(t, pessimistic.Config{})
	held := rig.Must(peer.Acquire(t.Context(), key(x)))(t)
	runs := 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		view := mine.In(tx)
		if _, err := view.Get(ctx, key(y)); err != nil {
			return err
		}
		if runs == 1 {
			go func() { // as soon as ours is free, the other takes it, and gives both back
				second, err := peer.Acquire(t.Context(), key(y))
				rig.Is(t, err)
				rig.Is(t, second.Release(t.Context()))
				rig.Is(t, held.Release(t.Context()))
			}()
		}
		_, err := view.Update(ctx, key(x), func(_ context.Context, p *plain) error { p.N++; return nil })
		return err
	})
	rig.Is(t, err)
	rig.Equal(t, runs, 2, "runs")
	has(t, w.stores["pessimistic"], x, 11)
}

// In the order of items a lock is waited for, whatever is held.
func TestInOrder(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	mine, peer := w.locking(t, pessimistic.Config{}), openPeer(t, w).locking(t, pessimistic.Config{})
	held := rig.Must(peer.Acquire(t.Context(), key(y)))(t)
	runs := 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		view := mine.In(tx)
		if _, err := view.Get(ctx, key(x)); err != nil {
			return err
		}
		time.AfterFunc(20*time.Millisecond, func() { rig.Is(t, held.Release(t.Context())) })
		_, err := view.Update(ctx, key(y), func(_ context.Context, p *plain) error { p.N++; return nil })
		return err
	})
	rig.Is(t, err)
	rig.Equal(t, runs, 1, "runs")
}

// An item that comes into being after it was missed is locked, also where the closure had said
// that it is missing.
func TestMissedAndMade(t *testing.T) {
	w := newWorld(t)
	s, x, y := w.stores["optimistic"], w.id("x"), w.id("y")
	rig.Is(t, s.create(t.Context(), y, 10))
	mine, peer := w.locking(t, pessimistic.Config{}), openPeer(t, w).locking(t, pessimistic.Config{})
	runs := 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if _, err := s.in(tx).get(ctx, y); err != nil {
			return err
		}
		_, err := mine.In(tx).Get(ctx, key(x))
		if runs == 1 {
			rig.Must(peer.Create(t.Context(), plain{ID: x}))(t)
		} else {
			_, held := peer.TryAcquire(t.Context(), key(x))
			rig.Is(t, held, repo.ErrLocked)
		}
		return err
	}))
	rig.Equal(t, runs, 2, "runs")
}

// An item that was to be made, and is there and held, is waited for where the closure fails for
// another reason, too: one run more finds it.
func TestToBeMadeAndHeld(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	mine, peer := w.locking(t, pessimistic.Config{}), openPeer(t, w).locking(t, pessimistic.Config{})
	held := rig.Must(peer.Acquire(t.Context(), key(x)))(t)
	runs := 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if runs++; runs == 2 {
			time.AfterFunc(20*time.Millisecond, func() { rig.Is(t, held.Release(t.Context())) })
		}
		if _, err := mine.In(tx).Create(ctx, plain{ID: x}); err != nil {
			return err
		}
		_, err := w.stores["optimistic"].in(tx).get(ctx, y)
		return errors.Join(err, errStop)
	}), repo.ErrExists)
	rig.Equal(t, runs, 2, "runs")
}

// An item without a lock of ours that another holds is waited for with empty
// hands, too; also where only the commit finds it.
func TestHeldByOthers(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld(t)
		x, y := w.two(t)
		mine := w.locking(t, pessimistic.Config{})
		other := openPeer(t, w)
		locker := rig.Must(lockedread.New(table[counted](t, other.Rig, "-o", false), lockedread.Config{}))(t)
		peer := other.locking(t, pessimistic.Config{})
		versions := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
		hold := func() {
			held, err := locker.Acquire(t.Context(), key(y))
			rig.Is(t, err)
			go func() {
				ours, err := peer.Acquire(t.Context(), key(x))
				rig.Is(t, err)
				rig.Is(t, ours.Release(t.Context()))
				rig.Is(t, held.Release(t.Context()))
			}()
		}
		runs := 0
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			if _, err := mine.In(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			if runs == 1 && !late {
				hold()
			}
			if _, err := versions.In(tx).Update(ctx, key(y), func(_ context.Context, c *counted) error { c.N++; return nil }); err != nil {
				return err
			}
			if runs == 1 && late {
				hold()
			}
			return nil
		})
		rig.Is(t, err)
		rig.Equal(t, runs, 2, "late %v: runs", late)
		has(t, w.stores["optimistic"], y, 11)
	}
}

// A lock that is lost in the middle, in whatever way: nothing is written, and the
// error says which.
func TestLostLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  pessimistic.Config
		lose func(ctx context.Context, t *testing.T, peer *pessimistic.Repository[plain], id string)
		want error
	}{
		"broken": {pessimistic.Config{}, func(_ context.Context, t *testing.T, peer *pessimistic.Repository[plain], id string) {
			l := rig.Must(table[plain](t, tables.Rig, "-p", false).Inspect(t.Context(), key(id)))(t)
			rig.Is(t, peer.Locker().Break(t.Context(), key(id), l.Token))
		}, repo.ErrLockLost},
		"expired": {pessimistic.Config{Lease: time.Second}, func(ctx context.Context, t *testing.T, _ *pessimistic.Repository[plain], _ string) {
			rig.Is(t, rig.Ended(ctx, t), repo.ErrLockExpired)
		}, repo.ErrLockExpired},
		"taken over": {pessimistic.Config{Lease: time.Second, LateCommit: true}, func(ctx context.Context, t *testing.T, peer *pessimistic.Repository[plain], id string) {
			held := rig.Must(peer.Acquire(t.Context(), key(id)))(t)
			rig.Is(t, held.Release(t.Context()))
			rig.Is(t, rig.Ended(ctx, t), repo.ErrLockExpired)
		}, repo.ErrLockExpired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			x, y := w.two(t)
			peer := openPeer(t, w).locking(t, pessimistic.Config{ClockSkew: -1})
			versions, mine := w.stores["optimistic"], w.locking(t, c.cfg)
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if err := versions.in(tx).add(ctx, y, 1); err != nil {
					return err
				}
				if _, err := mine.In(tx).Update(ctx, key(x), func(_ context.Context, p *plain) error { p.N++; return nil }); err != nil {
					return err
				}
				c.lose(ctx, t, peer, x)
				return nil
			})
			rig.Is(t, err, c.want)
			var failed *txn.Error
			if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Key != key(x) || failed.Failed[0].Table != w.Table+"-p" {
				t.Errorf("failed: %+v", failed)
			}
			has(t, w.stores["pessimistic"], x, 10)
			has(t, versions, y, 10)
		})
	}
}

// A closure that fails has written nothing, whatever becomes of the locks: where their
// release has no answer, its caller was told that nobody knows.
func TestAClosureThatFailsAndLocksThatCannotBeGivenBack(t *testing.T) {
	t.Parallel()
	broken := func(t *testing.T, peer *pessimistic.Repository[plain], x string) {
		l := rig.Must(table[plain](t, tables.Rig, "-p", false).Inspect(t.Context(), key(x)))(t)
		rig.Is(t, peer.Locker().Break(t.Context(), key(x), l.Token))
	}
	for name, c := range map[string]struct {
		befalls func(t *testing.T, w *world, peer *pessimistic.Repository[plain], x string)
		is      error
	}{
		"one is broken": {func(t *testing.T, _ *world, peer *pessimistic.Repository[plain], x string) { broken(t, peer, x) }, repo.ErrLockLost},
		"and a later one of the item, too": {func(t *testing.T, _ *world, peer *pessimistic.Repository[plain], x string) {
			broken(t, peer, x)
			rig.Must(peer.Acquire(t.Context(), key(x)))(t)
			broken(t, peer, x)
		}, repo.ErrLockLost},
		"no answer": {func(_ *testing.T, w *world, _ *pessimistic.Repository[plain], _ string) { w.Always(fault.LoseResponse) }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			x, y := w.two(t)
			s := w.stores["pessimistic"]
			peer, mine := openPeer(t, w).locking(t, pessimistic.Config{ClockSkew: -1}), w.locking(t, pessimistic.Config{Lease: 2 * time.Second})
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				for _, id := range []string{x, y} {
					if _, err := mine.In(tx).Update(ctx, key(id), func(_ context.Context, p *plain) error { p.N++; return nil }); err != nil {
						return err
					}
				}
				c.befalls(t, w, peer, x)
				return errStop
			})
			w.Faults(nil)
			rig.Is(t, err, c.is)
			if v := repo.VerdictOf(err); v != repo.NotWritten || strings.Contains(fmt.Sprint(err), "wrote nothing: nothing") {
				t.Errorf("%v: %v", v, err)
			}
			has(t, s, x, 10)
			has(t, s, y, 10)
		})
	}
}

// Who cannot have a lock in time says for whom it waited.
func TestWaitingEnds(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	held := rig.Must(openPeer(t, w).locking(t, pessimistic.Config{Owner: "the other"}).Acquire(t.Context(), key(x)))(t)
	defer func() { rig.Is(t, held.Release(t.Context())) }()
	mine := w.locking(t, pessimistic.Config{})
	for _, order := range [][]string{{x}, {y, x}} {
		err := txn.Run(rig.Shortly(t), func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range order {
				if _, err := mine.In(tx).Get(ctx, key(id)); err != nil {
					return err
				}
			}
			return nil
		})
		rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
		var by *repo.LockedError
		if !errors.As(err, &by) || by.Owner != "the other" {
			t.Errorf("held by %+v: %v", by, err)
		}
	}
}

// A change that fails while its lock is fair leaves nobody waiting.
func TestFairHandsOn(t *testing.T) {
	w := newWorld(t)
	x, y := w.id("x"), w.id("y")
	fair, plainly := w.stores["fair"], w.stores["optimistic"]
	rig.Is(t, fair.create(t.Context(), x, 10))
	rig.Is(t, plainly.create(t.Context(), y, 10))
	peer := openPeer(t, w).stores["fair"]
	done := make(chan error, 1)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if err := fair.in(tx).add(ctx, x, 1); err != nil {
			return err
		}
		go func() { done <- peer.add(t.Context(), x, 1) }()
		rig.Await(t, "the other waits in the queue", func() bool {
			l, err := table[plain](t, w.Rig, "-f", false).Inspect(ctx, key(x))
			return err == nil && l.Last > l.Token
		})
		return plainly.in(tx).add(ctx, y, 1)
	})
	rig.Is(t, err)
	rig.Is(t, <-done)
	has(t, fair, x, 12)
}

// While a transaction waits for a dead holder its own locks do not end.
func TestWaitsForTheDead(t *testing.T) {
	w := newWorld(t)
	x, y := w.two(t)
	rig.Must(openPeer(t, w).locking(t, pessimistic.Config{Lease: lease}).Acquire(t.Context(), key(y)))(t) // and is never heard of again
	var clock repotest.Clock
	items := rig.Must(repo.NewTable[plain](w.Client, w.Table+"-p", repo.TableConfig{Clock: clock.Now}))(t)
	mine := rig.Must(pessimistic.New(items, pessimistic.Config{Lease: lease}))(t)
	done := make(chan error)
	go func() {
		done <- txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range []string{x, y} {
				if _, err := mine.In(tx).Update(ctx, key(id), func(_ context.Context, p *plain) error { p.N++; return nil }); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	until := func() time.Time { l, _ := items.Inspect(t.Context(), key(x)); return l.Until }
	rig.Await(t, "x is locked", func() bool { return !until().IsZero() })
	for range 2 { // more than a lease in all
		was := until()
		clock.Advance(35 * time.Second)
		rig.Await(t, "it is renewed, or committed", func() bool { return until() != was })
	}
	rig.Is(t, <-done)
	has(t, w.stores["pessimistic"], x, 11)
	has(t, w.stores["pessimistic"], y, 11)
}

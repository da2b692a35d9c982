package txn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Processes move money between accounts of every strategy, touched in any order,
// while requests are lost: none is lost or made, and a transaction that reads all
// accounts never sees half of a transfer. Nobody waits for ever.
func TestMoney(t *testing.T) {
	t.Parallel()
	rounds := rig.Share(7, 100)
	w := newWorld(t)
	var accounts []place
	for _, kind := range kinds {
		for n := range 2 {
			p := place{kind, w.id(fmt.Sprint("account ", n))}
			accounts = append(accounts, p)
			rig.Is(t, w.stores[kind].create(t.Context(), p.id, 100))
		}
	}
	total := 100 * len(accounts)
	sum := func(ctx context.Context, w *world) (all int, err error) {
		err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			all = 0
			for _, p := range accounts {
				n, err := w.stores[p.kind].in(tx).get(ctx, p.id)
				if err != nil {
					return err
				}
				all += n
			}
			return nil
		})
		return all, err
	}
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			p := w.process(t, uint64(100+n), 0.05)
			rng := rand.New(rand.NewPCG(uint64(n), 9)) // repeatable on purpose
			for range rounds {
				ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
				picked := rng.Perm(len(accounts))
				from, to, third := accounts[picked[0]], accounts[picked[1]], accounts[picked[2]]
				amount := 1 + rng.IntN(5)
				err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
					return errors.Join(
						p.stores[from.kind].in(tx).add(ctx, from.id, -2*amount),
						p.stores[to.kind].in(tx).add(ctx, to.id, amount),
						p.stores[third.kind].in(tx).add(ctx, third.id, amount))
				})
				if ctx.Err() != nil {
					t.Errorf("a transfer did not end: %v", err)
				}
				if rng.IntN(4) == 0 {
					if got, err := sum(ctx, p); err == nil && got != total {
						t.Errorf("a snapshot has %d, want %d", got, total)
					}
				}
				cancel()
			}
			p.Faults(nil)
			p.Net.Wait()
		})
	}
	all.Wait()
	if got, err := sum(t.Context(), w); err != nil || got != total {
		t.Errorf("%d at the end (%v), want %d", got, err, total)
	}
}

// Two who each read both items and change one, because the other is as it is, are
// not both applied (write skew).
func TestWriteSkew(t *testing.T) {
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		peer := openPeer(t, w)
		var read, all sync.WaitGroup
		wait := !peer.locks(a, w) && !peer.locks(b, w) // who locks, lets nobody read
		read.Add(2)
		off := func(w *world, a, b store, mine store, id string) {
			first := true
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				n, errA := a.in(tx).get(ctx, x)
				m, errB := b.in(tx).get(ctx, y)
				if err := errors.Join(errA, errB); err != nil {
					return err
				}
				if first && wait {
					first = false
					read.Done()
					read.Wait()
				}
				if n+m < 20 {
					return errStop // the other is off already
				}
				return mine.in(tx).add(ctx, id, -10)
			})
			if err != nil && !errors.Is(err, errStop) {
				t.Error(err)
			}
		}
		all.Go(func() { off(w, a, b, a, x) })
		all.Go(func() { c, d := peer.of(w, a), peer.of(w, b); off(peer.world, c, d, d, y) })
		all.Wait()
		n, errA := a.get(t.Context(), x)
		m, errB := b.get(t.Context(), y)
		rig.Is(t, errors.Join(errA, errB))
		rig.Equal(t, n+m, 10, "%d and %d", n, m)
	})
}

// Single changes of every strategy beside transactions on the same items: each
// counts once.
func TestMixing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, w *world, a, b store, x, y string) {
		rounds := rig.Share(2, 20)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for range rounds {
					err := move(t.Context(), a, b, x, y)
					for errors.Is(err, repo.ErrLockExpired) { // a starved machine; nothing was written
						err = move(t.Context(), a, b, x, y)
					}
					rig.Is(t, err)
				}
			})
			all.Go(func() {
				peer := openPeer(t, w)
				for range rounds {
					rig.Is(t, peer.of(w, a).add(t.Context(), x, 3))
					rig.Is(t, peer.of(w, b).add(t.Context(), y, 1))
				}
			})
		}
		all.Wait()
		has(t, a, x, 10)
		has(t, b, y, 10+2*rounds*4)
	})
}

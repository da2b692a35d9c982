package txn_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/txn"
)

// child is a process that moves money until it is killed.
func child(args []string) error {
	seed, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	w := openLeased(alone{}, (&rig.Rig{Table: args[0]}).Peer(), false, shortLease)
	w.suffix = args[1]
	accounts := w.accounts()
	rng := rand.New(rand.NewPCG(seed, 1)) // repeatable on purpose
	for {
		picked := rng.Perm(len(accounts))
		from, to := accounts[picked[0]], accounts[picked[1]]
		err := txn.Run(context.Background(), func(ctx context.Context, tx *txn.Tx) error {
			if err := w.stores[from.kind].in(tx).add(ctx, from.id, -1); err != nil {
				return err
			}
			return w.stores[to.kind].in(tx).add(ctx, to.id, 1)
		})
		if err != nil {
			return err
		}
	}
}

// alone stands in for a test in a process that runs none.
type alone struct{ testing.TB }

func (alone) Helper()                      {}
func (alone) Context() context.Context     { return context.Background() }
func (alone) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (alone) Errorf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }

func (w *world) accounts() (all []place) {
	for _, kind := range kinds {
		all = append(all, place{kind, w.id("account 0")}, place{kind, w.id("account 1")})
	}
	return all
}

// Processes that are killed in the middle of transactions leave neither half of one
// nor a lock that does not end.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accounts := w.accounts()
	for _, a := range accounts {
		rig.Is(t, w.stores[a.kind].create(t.Context(), a.id, 100))
	}
	read := func() (all []int, sum int) {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			all, sum = nil, 0
			for _, a := range accounts {
				n, err := w.stores[a.kind].in(tx).get(ctx, a.id)
				if err != nil {
					return err
				}
				all, sum = append(all, n), sum+n
			}
			return nil
		}))
		return all, sum
	}
	for round := range rig.Share(2, 10) {
		before, _ := read()
		var children []*exec.Cmd
		for n := range 3 {
			c := rig.Child(t, w.Table, w.suffix, fmt.Sprint(10*round+n))
			rig.Is(t, c.Start())
			children = append(children, c)
		}
		rig.Await(t, "money moves", func() bool {
			n, err := w.stores["optimistic"].get(t.Context(), accounts[0].id)
			return err == nil && n != before[0]
		})
		for _, c := range children {
			rig.Is(t, c.Process.Kill())
			_ = c.Wait() // it was killed
		}
		if all, sum := read(); sum != 100*len(accounts) {
			t.Errorf("%d: %v", sum, all)
		}
	}
	for _, a := range accounts {
		rig.Is(t, w.stores[a.kind].add(t.Context(), a.id, 1))
	}
}

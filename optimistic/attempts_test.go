package optimistic_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// Each caller of a group has its own attempts: who has joined late is not told that others
// wrote first in as many as the first has made.
func TestWhoJoinsAGroupLateHasItsOwnAttempts(t *testing.T) {
	t.Parallel()
	const attempts = 3
	r, table := open(t, optimistic.Config{Combine: true, Attempts: attempts})
	other := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	rig.Must(r.Create(t.Context(), customer{ID: "c1"}))(t)
	var late sync.WaitGroup
	var first, second int
	_, err := r.Update(t.Context(), key, func(_ context.Context, c *customer) error {
		first++
		c.Orders++
		rig.Must(other.Update(t.Context(), key, addOrder))(t) // which takes the attempt away
		if first == attempts {
			late.Go(func() {
				_, err := r.Update(t.Context(), key, func(_ context.Context, c *customer) error {
					second++
					c.Orders++
					return nil
				})
				rig.Is(t, err)
			})
			rig.Await(t, "another is in the line", func() bool { return optimistic.Waiting(r, key) == 1 })
		}
		return nil
	})
	rig.Is(t, err, repo.ErrConflict)
	late.Wait()
	if got := rig.Must(r.Get(t.Context(), key))(t); got.Orders != attempts+1 || first != attempts || second < 1 || second > 2 { // the second may have come too late for the last attempt of the first
		t.Errorf("%d orders after %d and %d runs", got.Orders, first, second)
	}
}

// Whose change always comes too late gets the item in the end: after three quarters of its
// attempts it takes the lock, and gives it back.
func TestWhoAlwaysLosesTakesTheLock(t *testing.T) {
	t.Parallel()
	const attempts = 32
	for _, combine := range []bool{false, true} {
		r, table := open(t, optimistic.Config{Combine: combine, Attempts: attempts, Wait: repo.Wait{Max: 10 * time.Millisecond}})
		other := rig.Must(optimistic.New(table, optimistic.Config{FailLocked: true}))(t)
		rig.Must(r.Create(t.Context(), customer{ID: "c1"}))(t)
		runs := 0
		got, err := r.Update(t.Context(), key, func(_ context.Context, c *customer) error {
			runs++
			c.Orders++
			_, err := other.Update(t.Context(), key, addOrder) // which takes the attempt away
			if runs > attempts*3/4 {
				rig.Is(t, err, repo.ErrLocked)
			} else {
				rig.Is(t, err)
			}
			return nil
		})
		rig.Is(t, err)
		if want := attempts*3/4 + 1; got.Orders != want || runs != want {
			t.Errorf("combine %v: %d orders after %d runs, want %d of both", combine, got.Orders, runs, want)
		}
		rig.Must(other.Update(t.Context(), key, addOrder))(t) // nobody holds it
	}
}

// Who does not wait for locks does not take one, either.
func TestWhoFailsOnLocksTakesNone(t *testing.T) {
	t.Parallel()
	r, table := open(t, optimistic.Config{FailLocked: true, Attempts: 10})
	other := rig.Must(optimistic.New(table, optimistic.Config{FailLocked: true}))(t)
	rig.Must(r.Create(t.Context(), customer{ID: "c1"}))(t)
	_, err := r.Update(t.Context(), key, func(_ context.Context, c *customer) error {
		c.Orders++
		rig.Must(other.Update(t.Context(), key, addOrder))(t)
		return nil
	})
	rig.Is(t, err, repo.ErrConflict)
}

package optimistic_test

import (
	"context"
	"sync"
	"testing"

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
	if got := rig.Must(r.Get(t.Context(), key))(t); got.Orders != attempts+1 || first != attempts || second != 2 {
		t.Errorf("%d orders after %d and %d runs", got.Orders, first, second)
	}
}

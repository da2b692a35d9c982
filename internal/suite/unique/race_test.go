package unique_test

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

const (
	people = 12
	emails = 6 // fewer than people: who wants one meets others
)

// expected are the errors of those who race.
func expected(err error) bool {
	for _, e := range []error{nil, repo.ErrNotUnique, repo.ErrNotFound, repo.ErrExists, repo.ErrConflict} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func anybody() string { return fmt.Sprintf("p%d", rand.IntN(people)) }
func anyEmail() string {
	if n := rand.IntN(emails + 1); n > 0 {
		return fmt.Sprintf("e%d", n)
	}
	return ""
}

// act does something that others do at the same time to the same items and values.
func act(ctx context.Context, s customers) error {
	id := anybody()
	switch rand.IntN(6) {
	case 0:
		_, err := s.Create(ctx, customer{ID: id, Email: anyEmail(), Tenant: "x", Login: anyEmail()})
		return err
	case 1:
		err := s.Delete(ctx, key(id))
		if errors.Is(err, repo.ErrOutcomeUnknown) {
			return nil // an item without claims, deleted beside others: it is gone, and nobody knows by whom
		}
		return err
	case 2, 3:
		_, err := s.Upsert(ctx, key(id), setEmail(anyEmail()))
		return err
	case 4:
		_, err := s.Update(ctx, key(id), func(_ context.Context, c *customer) error {
			c.Tenant, c.Login = "x", anyEmail()
			return nil
		})
		return err
	}
	return swap(ctx, s, id, anybody())
}

// swap exchanges the e-mails of two items.
func swap(ctx context.Context, s customers, a, b string) error {
	if a == b {
		return nil
	}
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		in := s.In(tx)
		x, err := in.Get(ctx, key(a))
		if err != nil {
			return err
		}
		var had string
		if _, err := in.Update(ctx, key(b), func(_ context.Context, c *customer) error {
			had, c.Email = c.Email, x.Email
			return nil
		}); err != nil {
			return err
		}
		_, err = in.Update(ctx, key(a), setEmail(had))
		return err
	})
}

func TestRacesForTheSameValues(t *testing.T) {
	r := rig.New(t)
	rig.Is(t, open(t, r, "optimistic", lease).table.EnsureTable(t.Context()))
	var all sync.WaitGroup
	var won sync.Map
	for strategy := range openers {
		for range 2 {
			s := open(t, r.Peer(), strategy, lease)
			all.Go(func() {
				for range rig.Share(40, 400) {
					err := act(t.Context(), s.customers)
					if !expected(err) {
						t.Errorf("%s: %v", strategy, err)
					}
					if err == nil {
						won.Store(strategy, true)
					}
				}
			})
		}
	}
	all.Wait()
	for strategy := range openers {
		if _, some := won.Load(strategy); !some {
			t.Errorf("%s: nothing came through", strategy)
		}
	}
	audit(t, r)
}

// TestOneOfManyWins lets many ask for one value at once.
func TestOneOfManyWins(t *testing.T) {
	r := rig.New(t)
	rig.Is(t, open(t, r, "optimistic", lease).table.EnsureTable(t.Context()))
	for round := range rig.Share(3, 20) {
		var all sync.WaitGroup
		var mu sync.Mutex
		winners := 0
		for strategy := range openers {
			s := open(t, r.Peer(), strategy, lease)
			for i := range 4 {
				all.Go(func() {
					_, err := s.Create(t.Context(), customer{ID: fmt.Sprintf("%s %d %d", strategy, i, round), Email: fmt.Sprint(round)})
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						winners++
					} else if !errors.Is(err, repo.ErrNotUnique) {
						t.Errorf("%s: %v", strategy, err)
					}
				})
			}
		}
		all.Wait()
		rig.Equal(t, winners, 1, "have it")
	}
	audit(t, r)
}

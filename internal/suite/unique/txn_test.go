package unique_test

import (
	"context"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// run runs a transaction on the customers.
func (s *store) run(t *testing.T, do func(ctx context.Context, in repo.Repository[customer]) error) error {
	return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return do(ctx, s.In(tx)) })
}

func TestTwoItemsSwapTheirValues(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org", Tenant: "x", Login: "a"})
		s.make(t, customer{ID: "bob", Email: "b@x.org", Tenant: "x", Login: "b"})
		rig.Is(t, s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
			if _, err := in.Update(ctx, key("ann"), setEmail("b@x.org")); err != nil {
				return err
			}
			_, err := in.Update(ctx, key("bob"), setEmail("a@x.org"))
			return err
		}))
		if got := rig.Must(s.Get(t.Context(), key("ann")))(t); got.Email != "b@x.org" {
			t.Errorf("%+v", got)
		}
		_, err := s.Create(t.Context(), customer{ID: "cid", Email: "a@x.org"})
		notUnique(t, err, "email", "bob", "a@x.org")
	})
}

func TestAKeyIsRenamed(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		rig.Is(t, s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
			c, err := in.Get(ctx, key("ann"))
			if err == nil {
				err = in.Delete(ctx, key("ann"))
			}
			if err == nil {
				_, err = in.Create(ctx, customer{ID: "anna", Email: c.Email})
			}
			return err
		}))
		_, err := s.Create(t.Context(), customer{ID: "ann", Email: "a@x.org"})
		notUnique(t, err, "email", "anna", "a@x.org")
	})
}

func TestATransactionIsRefusedForAnothersValue(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		s.make(t, customer{ID: "bob"})
		err := s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
			if _, err := in.Update(ctx, key("bob"), setNote("n")); err != nil {
				return err
			}
			_, err := in.Create(ctx, customer{ID: "cid", Email: "a@x.org"})
			return err
		})
		notUnique(t, err, "email", "ann", "a@x.org")
		var e *txn.Error
		if !as(err, &e) || len(e.Failed) != 1 || e.Failed[0].Key != key("cid") {
			t.Errorf("%v", err)
		}
		err = s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
			if _, err := in.Create(ctx, customer{ID: "cid", Email: "c@x.org"}); err != nil {
				return err
			}
			_, err := in.Update(ctx, key("bob"), setEmail("c@x.org"))
			return err
		})
		rig.Is(t, err, repo.ErrNotUnique) // of two of one transaction
		if got := rig.Must(s.Get(t.Context(), key("bob")))(t); got.Version != 1 {
			t.Errorf("%+v", got)
		}
	})
}

func TestATransactionGivesUpAndTakes(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		for range 2 {
			rig.Is(t, txn.Once("move").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				in := s.In(tx)
				if _, err := in.Upsert(ctx, key("bob"), setEmail("a@x.org")); err != nil {
					return err
				}
				_, err := in.Update(ctx, key("ann"), setEmail("new@x.org"))
				return err
			}))
		}
		// There and back within one transaction is no change.
		s.Count.Reset()
		rig.Is(t, s.run(t, func(ctx context.Context, in repo.Repository[customer]) error {
			_, err := in.Update(ctx, key("bob"), setEmail("x@x.org"))
			if err == nil {
				_, err = in.Update(ctx, key("bob"), setEmail("a@x.org"))
			}
			return err
		}))
		rig.Equal(t, s.Count.Count("TransactWriteItems"), 0, "%v", s.Count.Counts())
	})
}

func TestSaveAndRemoveKeepClaims(t *testing.T) {
	s := open(t, rig.New(t), "optimistic", lease)
	ctx := t.Context()
	rig.Is(t, s.table.EnsureTable(ctx))
	r := s.customers.(byVersion).Repository
	ann := s.make(t, customer{ID: "ann", Email: "a@x.org"})
	bob := rig.Must(r.Save(ctx, customer{ID: "bob", Email: "b@x.org"}))(t)

	s.Count.Reset()
	ann.Note = "n"
	ann = rig.Must(r.Save(ctx, ann))(t)
	rig.Equal(t, s.Count.Total(), 1, "a save that changes no unique attribute: %v", s.Count.Counts())
	ann.Email = "b@x.org"
	_, err := r.Save(ctx, ann)
	notUnique(t, err, "email", "bob", "b@x.org")
	ann.Email = "new@x.org"
	s.Count.Reset()
	ann = rig.Must(r.Save(ctx, ann))(t)
	if s.Count.Total() != 3 || ann.Version != 3 {
		t.Errorf("%+v: %v", ann, s.Count.Counts())
	}
	old := ann
	old.Version--
	_, err = r.Save(ctx, old)
	rig.Is(t, err, repo.ErrConflict)
	rig.Is(t, r.Remove(ctx, old), repo.ErrConflict)

	bob.Email = "a@x.org"
	bob = rig.Must(r.Save(ctx, bob))(t)
	rig.Is(t, r.Remove(ctx, bob))
	audit(t, s.Rig)
	ann.Email = "a@x.org"
	ann = rig.Must(r.Save(ctx, ann))(t)
	ann.Email = ""
	rig.Must(r.Save(ctx, ann))(t)
	s.make(t, customer{ID: "bob", Email: "a@x.org"})
	audit(t, s.Rig)

	rig.Is(t, txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		in := r.In(tx)
		bob, err := in.Get(ctx, key("bob"))
		if err != nil {
			return err
		}
		if err := in.Remove(ctx, bob); err != nil {
			return err
		}
		ann, err := in.Get(ctx, key("ann"))
		if err != nil {
			return err
		}
		ann.Email = bob.Email
		_, err = in.Save(ctx, ann)
		return err
	}))
	audit(t, s.Rig)
	_, err = rig.Must(optimistic.New(s.table, optimistic.Config{}))(t).Create(ctx, customer{ID: "bob", Email: "a@x.org"})
	notUnique(t, err, "email", "ann", "a@x.org")
}

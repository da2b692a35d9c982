package unique_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/google/go-cmp/cmp"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func as[E error](err error, target *E) bool { return errors.As(err, target) }

func TestAValueIsThatOfOneItem(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		made := s.make(t, customer{ID: "ann", Email: "a@x.org", Tenant: "x", Login: "a"})
		rig.Equal(t, made.Version, 1, "version")
		_, err := s.Create(ctx, customer{ID: "bob", Email: "a@x.org"})
		notUnique(t, err, "email", "ann", "a@x.org")
		_, err = s.Create(ctx, customer{ID: "bob", Tenant: "x", Login: "a"})
		notUnique(t, err, "login", "ann", "\"a\"")
		s.make(t, customer{ID: "bob", Email: "b@x.org", Tenant: "x", Login: "b"})
		_, err = s.Update(ctx, key("bob"), setEmail("a@x.org"))
		notUnique(t, err, "email", "ann", "a@x.org")
		_, err = s.Upsert(ctx, key("cid"), setEmail("b@x.org"))
		notUnique(t, err, "email", "bob", "b@x.org")
		_, err = s.Get(ctx, key("cid"))
		rig.Is(t, err, repo.ErrNotFound)

		_, err = s.Create(ctx, customer{ID: "ann", Email: "z@x.org"})
		rig.Is(t, err, repo.ErrExists)
		s.make(t, customer{ID: "dan", Email: "z@x.org", Tenant: "y", Login: "a"}) // another tenant's
		got := rig.Must(s.Get(ctx, key("bob")))(t)
		if d := cmp.Diff(customer{ID: "bob", Email: "b@x.org", Tenant: "x", Login: "b", Version: 1}, got); d != "" {
			t.Error(d)
		}
	})
}

func TestAValueThatIsGivenUpIsFree(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		s.make(t, customer{ID: "ann", Email: "a@x.org", Tenant: "x", Login: "a"})
		changed := rig.Must(s.Update(ctx, key("ann"), setEmail("new@x.org")))(t)
		if changed.Version != 2 || changed.Email != "new@x.org" {
			t.Errorf("%+v", changed)
		}
		s.make(t, customer{ID: "bob", Email: "a@x.org"})
		rig.Must(s.Update(ctx, key("bob"), setEmail("")))(t)
		rig.Must(s.Upsert(ctx, key("cid"), setEmail("a@x.org")))(t)
		rig.Is(t, s.Delete(ctx, key("cid")))
		rig.Must(s.Update(ctx, key("bob"), setEmail("a@x.org")))(t)
		rig.Must(s.Update(ctx, key("ann"), func(context.Context, *customer) error { return repo.Remove }))(t)
		rig.Must(s.Update(ctx, key("bob"), func(_ context.Context, c *customer) error {
			c.Email, c.Tenant, c.Login = "new@x.org", "x", "a"
			return nil
		}))(t)
		got := rig.Must(s.Get(ctx, key("bob")))(t)
		if got.Email != "new@x.org" || got.Login != "a" || got.Version != 4 {
			t.Errorf("%+v", got)
		}
	})
}

func TestEmptyIsNotClaimed(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Tenant: "x"})
		s.make(t, customer{ID: "bob", Tenant: "x"})
		if _, claims := rows(t, s.Table); len(claims) != 0 {
			t.Errorf("%d claims", len(claims))
		}
		rig.Equal(t, s.Count.Count("TransactWriteItems"), 0, "transactions")
	})
}

// What is not UTF-8 is stored as another text: two items had the same one then, each with a
// claim of its own.
func TestATextThatWouldBeStoredAsAnother(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		rename := func(_ context.Context, c *customer) error { c.Email = "x\xff"; return nil }
		calls := map[string]func(r repo.Repository[customer]) error{
			"Create": func(r repo.Repository[customer]) error {
				_, err := r.Create(ctx, customer{ID: "bob", Tenant: "x", Login: "\xfe"})
				return err
			},
			"Update": func(r repo.Repository[customer]) error { _, err := r.Update(ctx, key("ann"), rename); return err },
			"Upsert": func(r repo.Repository[customer]) error { _, err := r.Upsert(ctx, key("cid"), rename); return err },
		}
		for name, call := range calls {
			for by, r := range map[string]repo.Repository[customer]{"": s.customers, "once": s.Once(name)} {
				if err := call(r); !errors.Is(err, repo.ErrSchema) || repo.VerdictOf(err) != repo.NotWritten {
					t.Errorf("%s %s: %v", by, name, err)
				}
			}
			rig.Is(t, txn.Run(ctx, func(_ context.Context, tx *txn.Tx) error { return call(s.In(tx)) }), repo.ErrSchema)
		}
		if items, claims := rows(t, s.Table); len(items) != 1 || len(claims) != 1 {
			t.Errorf("%d items, %d claims", len(items), len(claims))
		}
	})
}

func TestNothingIsPaidWhereTheValueStays(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		s.Count.Reset()
		rig.Must(s.Update(t.Context(), key("ann"), setNote("n")))(t)
		if n := s.Count.Count("TransactWriteItems"); n != 0 || s.Count.Total() != 2 {
			t.Errorf("%v", s.Count.Counts())
		}
	})
}

func TestReadersDoNotSeeClaims(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		n := 0
		for c, err := range s.table.Scan(t.Context()) {
			rig.Is(t, err)
			if n++; c.ID != "ann" {
				t.Errorf("%+v", c)
			}
		}
		_, claims := rows(t, s.Table)
		if n != 1 || len(claims) != 1 {
			t.Fatalf("%d items, %d claims", n, len(claims))
		}
		_, err := s.table.Decode(claims[0])
		rig.Is(t, err, repo.ErrNotFound)
		_, err = s.Create(t.Context(), customer{ID: text(claims[0]["id"])})
		rig.Is(t, err, repo.ErrKey)
		_, err = s.Get(t.Context(), key(text(claims[0]["id"])))
		rig.Is(t, err, repo.ErrKey)
	})
}

func TestApplyLeavesUniqueAttributesAlone(t *testing.T) {
	type applier interface {
		Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (customer, error)
	}
	forAll(t, func(t *testing.T, s *store) {
		s.make(t, customer{ID: "ann", Email: "a@x.org"})
		s.Count.Reset()
		apply := s.customers.(applier).Apply
		for _, update := range []expression.UpdateBuilder{
			expression.Set(expression.Name("email"), expression.Value("b@x.org")), expression.Remove(expression.Name("login")),
		} {
			_, err := apply(t.Context(), key("ann"), update)
			rig.Is(t, err, repo.ErrFixed)
		}
		rig.Equal(t, s.Count.Total(), 0, "%v was sent", s.Count.Counts())
		got := rig.Must(apply(t.Context(), key("ann"), expression.Set(expression.Name("note"), expression.Name("email"))))(t)
		rig.Equal(t, got.Note, "a@x.org", "%+v", got)
	})
}

func TestOnceBesideClaims(t *testing.T) {
	forAll(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		for range 2 {
			rig.Must(s.Once("make").Create(ctx, customer{ID: "ann", Email: "a@x.org"}))(t)
		}
		for range 2 {
			rig.Must(s.Once("change").Update(ctx, key("ann"), func(_ context.Context, c *customer) error {
				c.Email += "!"
				return nil
			}))(t)
		}
		if got := rig.Must(s.Get(ctx, key("ann")))(t); got.Email != "a@x.org!" || got.Version != 2 {
			t.Errorf("%+v", got)
		}
		rig.Is(t, s.Once("end").Delete(ctx, key("ann")))
		s.make(t, customer{ID: "bob", Email: "a@x.org!"})
	})
}

package once_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// inside makes calls in the views of a transaction.
func (s *store) inside(t *testing.T, do func(ctx context.Context, tx *txn.Tx) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return do(ctx, tx) })
}

// Inside a transaction an id means what it means outside: one change, whichever of
// the two brings it, and whatever else the transaction does.
func TestOnceInsideATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		want := 10
		for name, do := range taking {
			for round := range 3 {
				v, twice := s.once(name), s.once(name)
				if name == "Apply" { // nobody can tell what it makes of the item
					twice = nil
				}
				rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
					for i, o := range []view{v, twice} {
						if o == nil {
							break
						}
						got, err := do(ctx, inTx{o, inside(o, tx)})
						if err != nil {
							return err
						}
						if i == 0 && round == 0 {
							want--
						}
						if got.Stock != want && name != "Apply" || o.Repeated() != (round > 0 || i > 0) {
							t.Errorf("%s, round %d, call %d: %+v, repeated %v, want %d", name, round, i, got, o.Repeated(), want)
						}
					}
					return nil
				}))
			}
			v := s.once(name)
			if got := rig.Must(do(t.Context(), v))(t); got.Stock != want || !v.Repeated() {
				t.Errorf("%s outside, after: %+v, repeated %v", name, got, v.Repeated())
			}
			want--
			rig.Must(do(t.Context(), s.once(name+" outside")))(t)
			v = s.once(name + " outside")
			rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
				_, err := do(ctx, inTx{v, inside(v, tx)})
				return err
			}))
			if s.stock(t) != want || !v.Repeated() {
				t.Errorf("%s inside, after: stock %d, want %d, repeated %v", name, s.stock(t), want, v.Repeated())
			}
		}
	})
}

// inTx is a view whose changes are made inside a transaction.
type inTx struct {
	view
	in viewInside
}

// viewInside is what both strategies offer inside a transaction.
type viewInside interface {
	repo.Repository[product]
	Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error
}

// inside is a view under an id inside a transaction.
func inside(v view, tx *txn.Tx) viewInside {
	if o, ok := v.(*optimistic.Once[product]); ok {
		return o.In(tx)
	}
	return v.(*pessimistic.Once[product]).In(tx)
}

func (v inTx) Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) (product, error) {
	return product{}, v.in.Apply(ctx, key, update, conditions...)
}

func (v inTx) Update(ctx context.Context, key repo.Key, change func(context.Context, *product) error) (product, error) {
	return v.in.Update(ctx, key, change)
}

func (v inTx) Upsert(ctx context.Context, key repo.Key, change func(context.Context, *product) error) (product, error) {
	return v.in.Upsert(ctx, key, change)
}

// An id goes with its transaction: one that fails leaves none. A change that alters
// nothing leaves it. What is created and deleted under an id is as outside.
func TestOnceGoesWithItsTransaction(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		refused := errors.New("refused")
		rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			rig.Must(inside(s.once("m"), tx).Update(ctx, key, take))(t)
			return refused
		}), refused)
		rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			o := s.once("m")
			_, err := inside(o, tx).Update(ctx, key, func(context.Context, *product) error { return nil })
			if o.Repeated() {
				t.Error("a transaction that failed has left its id")
			}
			return err
		}))
		rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			o := s.once("m")
			if err := inside(o, tx).Delete(ctx, key); err != nil || !o.Repeated() {
				t.Errorf("a change that alters nothing: %v, repeated %v", err, o.Repeated())
			}
			return nil
		}))
		rig.Equal(t, s.stock(t), 10, "stock")
		rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error { return inside(s.once("d"), tx).Delete(ctx, key) }))
		for i := range 2 {
			o, got := s.once("c"), product{} // of the last run: the first one assumes that there is none
			rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) (err error) {
				got, err = inside(o, tx).Create(ctx, product{SKU: "apple", Stock: 5 + i})
				return err
			}))
			if got.Stock != 5 || o.Repeated() != (i > 0) {
				t.Errorf("create %d: %+v, repeated %v", i, got, o.Repeated())
			}
		}
		err := s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			_, err := inside(s.once("another"), tx).Create(ctx, product{SKU: "apple"})
			return err
		})
		rig.Is(t, err, repo.ErrExists)
		err = s.inside(t, func(ctx context.Context, tx *txn.Tx) error { return inside(s.once(""), tx).Delete(ctx, key) })
		rig.Is(t, err, repo.ErrConfig)
	})
}

// A message that comes again to a tombstone does not bring the item back, inside a
// transaction either.
func TestATombstoneRemembersInsideATransaction(t *testing.T) {
	b := rig.New(t)
	table := rig.Must(repo.NewTable[event](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	events := rig.Must(nolock.New(table, nolock.Config{}))(t)
	r := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t)
	s := &store{Rig: b}
	rig.Is(t, s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
		_, err := r.Once("m").In(tx).Create(ctx, event{SKU: "apple", At: 1})
		return err
	}))
	rig.Is(t, events.DeleteAt(t.Context(), key, 2))
	for name, do := range map[string]func(context.Context, repo.Repository[event]) error{
		"Upsert": func(ctx context.Context, in repo.Repository[event]) error {
			_, err := in.Upsert(ctx, key, func(_ context.Context, e *event) error { e.At = 20; return nil })
			return err
		},
		"Create": func(ctx context.Context, in repo.Repository[event]) error {
			_, err := in.Create(ctx, event{SKU: "apple", At: 20})
			return err
		},
	} {
		o := r.Once("m")
		err := s.inside(t, func(ctx context.Context, tx *txn.Tx) error { return do(ctx, o.In(tx)) })
		if !errors.Is(err, repo.ErrNotFound) || !o.Repeated() {
			t.Errorf("%s: %v, repeated %v", name, err, o.Repeated())
		}
	}
}

// An id that comes while an Apply begins an epoch, which must not remove it, is no reason to
// say that the condition of its caller does not hold.
func TestAnIDComesBeneathAnApplyInsideATransaction(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		s.set(t, "SET once = :a, onceEpoch = :e", map[string]types.AttributeValue{":a": set(id("a")), ":e": number(now() - 1)})
		came := false
		err := s.inside(t, func(ctx context.Context, tx *txn.Tx) error {
			v := s.once("m")
			if _, err := inside(v, tx).Get(ctx, key); err != nil {
				return err
			}
			if !came {
				came = true
				s.set(t, "ADD once :b", map[string]types.AttributeValue{":b": set(id("b"))})
			}
			_, err := taking["Apply"](ctx, inTx{v, inside(v, tx)})
			return err
		})
		if err != nil && !errors.Is(err, repo.ErrLockExpired) {
			t.Error(err)
		}
		for _, known := range []string{"a", "b"} {
			v := s.once(known)
			if rig.Must(taking["Update"](t.Context(), v))(t); !v.Repeated() {
				t.Errorf("the id %q is forgotten", known)
			}
		}
	})
}

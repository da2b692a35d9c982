package txn_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// raw is an item as DynamoDB has it.
func (w *world) raw(t *testing.T, suffix, id string) map[string]types.AttributeValue {
	t.Helper()
	return rig.Must(rig.Client().GetItem(t.Context(), &dynamodb.GetItemInput{
		TableName: aws.String(w.Table + suffix), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}, ConsistentRead: aws.Bool(true),
	}))(t).Item
}

// applier is what both strategies have beside the interface.
type applier interface {
	repo.Repository[counted]
	Apply(ctx context.Context, key repo.Key, update expression.UpdateBuilder, conditions ...expression.ConditionBuilder) error
}

// appliers are both, on one table.
func (w *world) appliers(t *testing.T) map[string]func(*txn.Tx) applier {
	t.Helper()
	o := rig.Must(optimistic.New(table[counted](t, w.Rig, "-o", false), optimistic.Config{}))(t)
	p := rig.Must(pessimistic.New(table[counted](t, w.Rig, "-o", false), pessimistic.Config{Lease: lease}))(t)
	f := rig.Must(pessimistic.New(table[counted](t, w.Rig, "-o", false), pessimistic.Config{Lease: lease, Fair: true}))(t)
	return map[string]func(*txn.Tx) applier{
		"optimistic":  func(tx *txn.Tx) applier { return o.In(tx) },
		"pessimistic": func(tx *txn.Tx) applier { return p.In(tx) },
		"fair":        func(tx *txn.Tx) applier { return f.In(tx) },
	}
}

func addN(n int) expression.UpdateBuilder {
	return expression.Add(expression.Name("n"), expression.Value(n))
}

func atLeast(n int) expression.ConditionBuilder {
	return expression.Name("n").GreaterThanEqual(expression.Value(n))
}

// forAppliers runs a test with each of them, on two items of ten.
func forAppliers(t *testing.T, test func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string)) {
	for _, name := range []string{"optimistic", "pessimistic", "fair"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			x, y := w.id("x"), w.id("y")
			for _, id := range []string{x, y} {
				rig.Is(t, w.stores["optimistic"].create(t.Context(), id, 10))
			}
			in := w.appliers(t)[name]
			w.Count.Reset()
			test(t, w, in, x, y)
		})
	}
}

// An expression that does not fit its item has written nothing, also where credentials have been
// good before: of a request that is invalid no copy was applied.
func TestAnExpressionThatDoesNotFit(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return in(tx).Apply(ctx, key(x), addN(1)) }))
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, in(tx).Apply(ctx, key(x), addN(1)))
			return in(tx).Apply(ctx, key(y), expression.Set(expression.Name("n"), expression.Name("n").ListAppend(expression.Value([]int{1}))))
		})
		if rig.Is(t, err, repo.ErrSchema); repo.VerdictOf(err) != repo.NotWritten {
			t.Errorf("%v: %v", repo.VerdictOf(err), err)
		}
		has(t, w.stores["optimistic"], x, 11)
	})
}

// Expressions read nothing and lock nothing: one request for all of them.
func TestApplyInside(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, in(tx).Apply(ctx, key(x), addN(-3), atLeast(3)))
			return in(tx).Apply(ctx, key(y), addN(3))
		}))
		if got := w.Count.Counts(); !maps.Equal(got, map[string]int{"TransactWriteItems": 1}) {
			t.Errorf("%v", got)
		}
		has(t, w.stores["optimistic"], x, 7)
		has(t, w.stores["optimistic"], y, 13)
		// Alone it is the plain request.
		w.Count.Reset()
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return in(tx).Apply(ctx, key(x), addN(1)) }))
		if got := w.Count.Counts(); !maps.Equal(got, map[string]int{"UpdateItem": 1}) {
			t.Errorf("%v", got)
		}
		// An item that the transaction has read, or holds, is as it has seen it.
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if _, err := in(tx).Get(ctx, key(x)); err != nil {
				return err
			}
			return in(tx).Apply(ctx, key(x), addN(1), atLeast(8))
		}))
		has(t, w.stores["optimistic"], x, 9)
		rig.Is(t, w.stores["optimistic"].add(t.Context(), x, 1)) // nobody holds it
	})
}

// A condition that does not hold fails the whole, with the item; whether the item was
// read before or not.
func TestConditionInside(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		for _, read := range []bool{false, true} {
			err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if read {
					if _, err := in(tx).Get(ctx, key(x)); err != nil {
						return err
					}
				}
				rig.Is(t, in(tx).Apply(ctx, key(x), addN(-11), atLeast(11)))
				_, err := in(tx).Update(ctx, key(y), func(_ context.Context, c *counted) error { c.N++; return nil })
				return err
			})
			rig.Is(t, err, repo.ErrCondition)
			var failed *txn.Error
			var refused *repo.ConditionError
			if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Key != key(x) || !errors.As(err, &refused) || refused.Item.(counted).N != 10 {
				t.Errorf("read %v: %v", read, err)
			}
		}
		for what, apply := range map[string]func(ctx context.Context, tx *txn.Tx) error{
			"nothing there": func(ctx context.Context, tx *txn.Tx) error { return in(tx).Apply(ctx, key(w.id("none")), addN(1)) },
			"nothing there, with a condition": func(ctx context.Context, tx *txn.Tx) error {
				return in(tx).Apply(ctx, key(w.id("none")), addN(1), atLeast(0))
			},
		} {
			if err := txn.Run(t.Context(), apply); !errors.Is(err, repo.ErrNotFound) {
				t.Errorf("%s: %v", what, err)
			}
		}
		for what, c := range map[string]struct {
			run  func(ctx context.Context, tx *txn.Tx) error
			want error
		}{
			"read after it": {func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, in(tx).Apply(ctx, key(x), addN(1)))
				_, err := in(tx).Get(ctx, key(x))
				return err
			}, repo.ErrConfig},
			"twice": {func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, in(tx).Apply(ctx, key(x), addN(1)))
				return in(tx).Apply(ctx, key(x), addN(1))
			}, repo.ErrConfig},
			"of the library's": {func(ctx context.Context, tx *txn.Tx) error {
				return in(tx).Apply(ctx, key(x), expression.Set(expression.Name("version"), expression.Value(1)))
			}, repo.ErrFixed},
		} {
			if err := txn.Run(t.Context(), c.run); !errors.Is(err, c.want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		has(t, w.stores["optimistic"], x, 10)
		has(t, w.stores["optimistic"], y, 10)
	})
}

// Somebody holds the item: Apply waits for that.
func TestApplyInsideWaits(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		other := rig.Must(pessimistic.New(table[counted](t, w.Peer(), "-o", false), pessimistic.Config{Lease: lease}))(t)
		held := rig.Must(other.Acquire(t.Context(), key(x)))(t)
		time.AfterFunc(50*time.Millisecond, func() {
			item := held.Item()
			item.N = 5
			_, err := held.Commit(context.WithoutCancel(t.Context()), item)
			rig.Is(t, err)
		})
		rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			rig.Is(t, in(tx).Apply(ctx, key(x), addN(1), atLeast(1)))
			return in(tx).Apply(ctx, key(y), addN(1))
		}))
		has(t, w.stores["optimistic"], x, 6)
		has(t, w.stores["optimistic"], y, 11)
	})
}

// An answer that is lost: applied once, and the verdict is true.
func TestApplyInsideIsAppliedOnce(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		want := 10
		for _, kind := range []fault.Kind{fault.LoseResponse, fault.DropRequest, fault.Error500After, fault.Resend, fault.Throttle} {
			for _, op := range []string{"TransactWriteItems", "UpdateItem"} {
				w.Nth(op, 0, kind)
				err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
					if op == "TransactWriteItems" {
						rig.Is(t, in(tx).Apply(ctx, key(y), addN(1)))
					}
					return in(tx).Apply(ctx, key(x), addN(1))
				})
				w.Faults(nil)
				n, _ := w.stores["optimistic"].get(t.Context(), x)
				switch {
				case kind == fault.LoseResponse && err != nil, err == nil && n != want+1, err != nil && !errors.Is(err, repo.ErrOutcomeUnknown), n != want && n != want+1:
					t.Errorf("%v of %s: %v, %d after %d", kind, op, err, n, want)
				}
				want = n
			}
		}
	})
}

// Under the id of the transaction they are made once too.
func TestApplyUnderAnID(t *testing.T) {
	forAppliers(t, func(t *testing.T, w *world, in func(*txn.Tx) applier, x, y string) {
		for i := range 2 {
			o := txn.Once("m")
			rig.Is(t, o.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, in(tx).Apply(ctx, key(y), addN(1)))
				return in(tx).Apply(ctx, key(x), addN(1), atLeast(1))
			}))
			rig.Equal(t, o.Repeated(), i > 0, "run %d: repeated", i)
		}
		err := txn.Once("n").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return in(tx).Apply(ctx, key(x), addN(1), atLeast(99)) })
		rig.Is(t, err, repo.ErrCondition)
		has(t, w.stores["optimistic"], x, 11)
		has(t, w.stores["optimistic"], y, 11)
	})
}

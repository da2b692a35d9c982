package single_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// holders write under the id of an operation what they have read before others are refused.
func holders() map[string]func(t *testing.T, on table, id string, meanwhile func(context.Context)) error {
	within := func(meanwhile func(context.Context)) func(context.Context, *account) error {
		return func(_ context.Context, a *account) error {
			meanwhile(context.Background()) // of another process: it knows nothing of this change
			a.Note = "changed"
			return nil
		}
	}
	return map[string]func(t *testing.T, on table, id string, meanwhile func(context.Context)) error{
		"under the lock": func(t *testing.T, on table, id string, meanwhile func(context.Context)) error {
			r := rig.Must(pessimistic.New(on, pessimistic.Config{}))(t)
			_, err := r.Once(id).Update(t.Context(), fixture.Key, within(meanwhile))
			return err
		},
		"under the lock, combining": func(t *testing.T, on table, id string, meanwhile func(context.Context)) error {
			r := rig.Must(pessimistic.New(on, pessimistic.Config{Combine: true}))(t)
			_, err := r.Once(id).Update(t.Context(), fixture.Key, within(meanwhile))
			return err
		},
		"under the lock, by an Apply in a transaction": func(t *testing.T, on table, id string, meanwhile func(context.Context)) error {
			r := rig.Must(pessimistic.New(on, pessimistic.Config{}))(t)
			return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				in := r.Once(id).In(tx)
				if _, err := in.Get(ctx, fixture.Key); err != nil {
					return err
				}
				meanwhile(context.Background())
				return in.Apply(ctx, fixture.Key, expression.Set(expression.Name("note"), expression.Value("changed")))
			})
		},
	}
}

// beside locks an item by hand before the function of a change without the lock.
func beside(do func(*optimistic.Repository[account], context.Context, string, func(context.Context, *account) error) error) func(t *testing.T, w *world, id string, meanwhile func(context.Context)) error {
	return func(t *testing.T, w *world, id string, meanwhile func(context.Context)) error {
		ran := false
		return do(w.others, t.Context(), id, func(_ context.Context, a *account) error {
			if !ran {
				ran = true
				release := w.lock(t, true)
				meanwhile(context.Background())
				release()
			}
			a.Note = "changed"
			return nil
		})
	}
}

// TestRefusedBesideAnOperation: a write that a lock alone has refused is told "not written",
// and no copy of it is applied later, also where the id that keeps it out has come onto the
// item between the read and the write of an operation under an id.
func TestRefusedBesideAnOperation(t *testing.T) {
	type held func(t *testing.T, w *world, id string, meanwhile func(context.Context)) error
	ways := map[string]held{"without the lock": beside(func(r *optimistic.Repository[account], ctx context.Context, id string, change func(context.Context, *account) error) error {
		_, err := r.Once(id).Update(ctx, fixture.Key, change)
		return err
	})}
	for name, hold := range holders() {
		ways[name] = func(t *testing.T, w *world, id string, meanwhile func(context.Context)) error {
			return hold(t, w.Items(t, rig.Client()), id, meanwhile)
		}
	}
	for _, c := range calls() {
		if c.locks || c.makes {
			continue
		}
		for name, hold := range ways {
			for _, ids := range []int{0, 3} { // that the item has before
				t.Run(fmt.Sprintf("%s/%s/%d ids", c.name, name, ids), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, c)
					for i := range ids {
						w.was = rig.Must(w.others.Once(fmt.Sprint(i)).Update(t.Context(), fixture.Key, func(_ context.Context, a *account) error { a.Note = fmt.Sprint(i); return nil }))(t)
					}
					sent := w.copier.Keep(fault.Writes)
					rig.Is(t, hold(t, w, "own", func(ctx context.Context) {
						if err := w.run(ctx, w.was); repo.VerdictOf(err) != repo.NotWritten || errors.Is(err, repo.ErrNested) {
							t.Fatalf("refused: %v", err)
						}
					}))
					w.copier.On(nil)
					for _, one := range sent() {
						resp, err := one.Deliver()
						rig.Is(t, err)
						rig.Is(t, resp.Body.Close())
					}
					if n := w.applied(t, c); n != 0 {
						t.Errorf("a copy of what was told not written was applied")
					}
					for i := range ids {
						once := w.others.Once(fmt.Sprint(i))
						if _, err := once.Update(t.Context(), fixture.Key, add); err != nil || !once.Repeated() {
							t.Errorf("the id %d is forgotten: %v", i, err)
						}
					}
				})
			}
		}
	}
}

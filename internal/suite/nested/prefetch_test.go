package nested_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// operation is an operation of a view, on an item at version 1.
type operation struct {
	strategy string
	do       func(ctx context.Context, tx *txn.Tx, id string) error
}

// operations are all operations of views.
func (w *world) operations() map[string]operation {
	ops := map[string]operation{
		"optimistic Save": {"optimistic", func(ctx context.Context, tx *txn.Tx, id string) error {
			_, err := w.optimistic.In(tx).Save(ctx, thing{ID: id, N: 30, At: 9, Version: 1})
			return err
		}},
		"optimistic Remove": {"optimistic", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.optimistic.In(tx).Remove(ctx, thing{ID: id, Version: 1})
		}},
		"optimistic Apply": {"optimistic", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.optimistic.In(tx).Apply(ctx, key(id), plus)
		}},
		"fair Apply": {"optimistic, fair", func(ctx context.Context, tx *txn.Tx, id string) error { return w.fair.In(tx).Apply(ctx, key(id), plus) }},
		"pessimistic Apply": {"pessimistic", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.locking.In(tx).Apply(ctx, key(id), plus)
		}},
		"nolock Put": {"nolock", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.events.In(tx).Put(ctx, thing{ID: id, N: 30, At: 9})
		}},
		"nolock Apply": {"nolock", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.events.In(tx).Apply(ctx, key(id), 9, plus)
		}},
		"nolock DeleteAt": {"nolock", func(ctx context.Context, tx *txn.Tx, id string) error {
			return w.events.In(tx).DeleteAt(ctx, key(id), 9)
		}},
	}
	for name := range w.views(nil) {
		in := func(op string, do func(context.Context, repo.Repository[thing], string) error) {
			ops[name+" "+op] = operation{name, func(ctx context.Context, tx *txn.Tx, id string) error { return do(ctx, w.views(tx)[name], id) }}
		}
		in("Update", func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Update(ctx, key(id), more)
			return err
		})
		in("Upsert", func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Upsert(ctx, key(id), more)
			return err
		})
		in("Get", func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Get(ctx, key(id))
			return err
		})
		in("Delete", func(ctx context.Context, r repo.Repository[thing], id string) error { return r.Delete(ctx, key(id)) })
		in("Create", func(ctx context.Context, r repo.Repository[thing], id string) error {
			_, err := r.Create(ctx, thing{ID: id + " new", At: 9})
			return err
		})
	}
	return ops
}

// keys names an item, and the new one beside it, by the repository of a strategy.
func (w *world) keys(strategy string, ids ...string) txn.Keys {
	var keys []repo.Key
	for _, id := range ids {
		keys = append(keys, key(id), key(id+" new"))
	}
	switch strategy {
	case "optimistic, fair":
		return w.fair.Keys(keys...)
	case "pessimistic", "pessimistic.Once":
		return w.locking.Keys(keys...)
	case "nolock":
		return w.events.Keys(keys...)
	}
	return w.optimistic.Keys(keys...)
}

// Whether, when, and how often an item is named beforehand changes nothing of what an
// operation does.
func TestPrefetchInAnyOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	orders := map[string]struct{ before, after, twice bool }{
		"never": {}, "before": {before: true}, "after": {after: true}, "before and after": {before: true, after: true}, "doubles": {before: true, after: true, twice: true},
	}
	n := 0
	for name, op := range w.operations() {
		results := map[string]string{}
		for order, o := range orders {
			n++
			id, beside := w.make(t, fmt.Sprint("x", n)), w.make(t, fmt.Sprint("y", n))
			prefetch := func(ctx context.Context, tx *txn.Tx, wanted bool) error {
				if !wanted {
					return nil
				}
				keys := []txn.Keys{w.keys(op.strategy, id)}
				if o.twice {
					keys = append(keys, keys...)
					var many []string
					for range 60 {
						many = append(many, id)
					}
					keys = append(keys, w.keys(op.strategy, many...))
				}
				return tx.Prefetch(ctx, keys...)
			}
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if err := prefetch(ctx, tx, o.before); err != nil {
					return err
				}
				if err := op.do(ctx, tx, id); err != nil {
					return err
				}
				if err := prefetch(ctx, tx, o.after); err != nil {
					return err
				}
				_, err := w.views(tx)[op.strategy].Update(ctx, key(beside), more)
				return err
			}))
			got, missing := w.optimistic.Get(t.Context(), key(id))
			got.ID = ""
			results[order] = fmt.Sprint(got, errors.Is(missing, repo.ErrNotFound))
			w.has(t, beside, 11)
		}
		for order, got := range results {
			rig.Equal(t, got, results["never"], "%s, named %s", name, order)
		}
	}
}

package answers_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/txn"
)

func transactionCalls() (all []call) {
	for _, n := range []int{1, 3} {
		for _, once := range []bool{false, true} {
			name := fmt.Sprintf("txn.Run, %d items", n)
			if once {
				name = fmt.Sprintf("txn.Once.Run, %d items", n)
			}
			all = append(all, call{name: name, open: func(t *testing.T, p *place, c client, id string) action {
				items := p.items(t, c)
				first, second, third := versions(optimistic.Config{})(t, items), locks(pessimistic.Config{})(t, items), events(t, items)
				for i := range 3 {
					there(t, first, fmt.Sprint(id, i))
				}
				run := func(ctx context.Context, fn func(context.Context, *txn.Tx) error) error {
					if once {
						return txn.Once("m"+id).Run(ctx, fn)
					}
					return txn.Run(ctx, fn)
				}
				return action{run: func(ctx context.Context) error {
					return run(ctx, func(ctx context.Context, tx *txn.Tx) error { return change(ctx, tx, n, id, first, second, third) })
				}, applied: together(t, p, id, n)}
			}})
		}
	}
	return all
}

// change adds one to so many items, by all strategies.
func change(ctx context.Context, tx *txn.Tx, n int, id string, first *optimistic.Repository[account], second *pessimistic.Repository[account], third *nolock.Repository[account]) error {
	_, err := first.In(tx).Update(ctx, keyOf(id+"0"), addOne)
	if err == nil && n > 1 {
		_, err = second.In(tx).Update(ctx, keyOf(id+"1"), addOne)
	}
	if err == nil && n > 2 {
		_, err = third.In(tx).Update(ctx, keyOf(id+"2"), addOne)
	}
	return err
}

// together is how often all were changed; -1: some were.
func together(t *testing.T, p *place, id string, n int) func(context.Context) int {
	return func(ctx context.Context) int {
		all := make([]int, n)
		for i := range all {
			if all[i] = balance(t, p, fmt.Sprint(id, i))(ctx); all[i] != all[0] {
				return -1
			}
		}
		return all[0]
	}
}

package main

import (
	"context"
	"errors"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// member is a repository that takes part in transactions.
type member struct {
	in   func(*txn.Tx) repo.Repository[account]
	keys func(...repo.Key) txn.Keys
}

// transactional are the contenders of this library for changes of several items.
func transactional() []load.Contender {
	byVersion := func(t *repo.Table[account]) (member, error) {
		r, err := optimistic.New(t, optimistic.Config{})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	byFair := func(t *repo.Table[account]) (member, error) {
		r, err := optimistic.New(t, optimistic.Config{Fair: true})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	byLock := func(t *repo.Table[account]) (member, error) {
		r, err := pessimistic.New(t, pessimistic.Config{Race: true})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	byQueue := func(t *repo.Table[account]) (member, error) {
		r, err := pessimistic.New(t, pessimistic.Config{})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	return []load.Contender{
		inTransaction("txn, optimistic", byVersion, false),
		inTransaction("txn, optimistic, prefetch", byVersion, true),
		inTransaction("txn, optimistic, fair, prefetch", byFair, true),
		inTransaction("txn, pessimistic, race", byLock, false),
		inTransaction("txn, pessimistic, race, prefetch", byLock, true),
		inTransaction("txn, pessimistic, prefetch", byQueue, true),
	}
}

func inTransaction(name string, open func(*repo.Table[account]) (member, error), prefetch bool) load.Contender {
	return ours(name, open, func(r member) load.Change {
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
				if prefetch {
					if err := tx.Prefetch(ctx, r.keys(thoseThere(items)...)); err != nil {
						return err
					}
				}
				accounts := r.in(tx)
				for _, i := range items {
					if err := do(ctx, accounts, i); err != nil {
						return err
					}
				}
				inside(ctx)
				return nil
			})
		}
	})
}

// ours is a contender of this library over items with a version.
func ours[R any](name string, open func(*repo.Table[account]) (R, error), change func(R) load.Change) load.Contender {
	c := load.Ours(name, open, change)
	c.Prepare = versioned
	return c
}

// do does to one item what a change does to it.
func do(ctx context.Context, accounts repo.Repository[account], i load.Touched) (err error) {
	if i.New {
		_, err = accounts.Create(ctx, account{ID: i.ID, N: 1, Balance: i.Move})
	} else {
		_, err = accounts.Update(ctx, repo.Key{Partition: i.ID}, func(_ context.Context, a *account) error {
			a.move(i.Move)
			return nil
		})
	}
	return err
}

// thoseThere are the keys of the items that need not be made.
func thoseThere(items []load.Touched) (keys []repo.Key) {
	for _, i := range items {
		if !i.New {
			keys = append(keys, repo.Key{Partition: i.ID})
		}
	}
	return keys
}

// unknown tells whether an error of this library leaves open if the change is there.
func unknown(err error) bool { return errors.Is(err, repo.ErrOutcomeUnknown) }

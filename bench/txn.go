package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	byLock := func(t *repo.Table[account]) (member, error) {
		r, err := pessimistic.New(t, pessimistic.Config{})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	byQueue := func(t *repo.Table[account]) (member, error) {
		r, err := pessimistic.New(t, pessimistic.Config{Fair: true})
		return member{func(tx *txn.Tx) repo.Repository[account] { return r.In(tx) }, r.Keys}, err
	}
	return []load.Contender{
		inTransaction("txn, optimistic", byVersion, false),
		inTransaction("txn, optimistic, prefetch", byVersion, true),
		inTransaction("txn, pessimistic", byLock, false),
		inTransaction("txn, pessimistic, prefetch", byLock, true),
		inTransaction("txn, pessimistic, fair, prefetch", byQueue, true),
	}
}

func inTransaction(name string, open func(*repo.Table[account]) (member, error), prefetch bool) load.Contender {
	return load.Contender{Name: name, Prepare: versioned, Unknown: unknown, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		t, err := repo.NewTable[account](client, table, repo.TableConfig{})
		if err != nil {
			return nil, err
		}
		r, err := open(t)
		if err != nil {
			return nil, err
		}
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
		}, nil
	}}
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

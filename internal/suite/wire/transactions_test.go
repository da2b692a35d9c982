package wire

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// member is a repository that joins transactions.
type member interface {
	In(tx *txn.Tx) repo.Repository[item]
	Keys(keys ...repo.Key) txn.Keys
}

// events are nolock's, whose view has more methods.
type events struct{ *nolock.Repository[item] }

func (e events) In(tx *txn.Tx) repo.Repository[item] { return e.Repository.In(tx) }

// versions are optimistic's.
type versions struct{ *optimistic.Repository[item] }

func (v versions) In(tx *txn.Tx) repo.Repository[item] { return v.Repository.In(tx) }

// locks are pessimistic's.
type locks struct{ *pessimistic.Repository[item] }

func (l locks) In(tx *txn.Tx) repo.Repository[item] { return l.Repository.In(tx) }

var second = repo.Key{Partition: "p", Sort: 2}

// strategyInside makes the operations of a repository inside transactions, on
// two items that are there.
func strategyInside(name string, open func(*testing.T, *repo.Table[item]) member) []operation {
	on := func(what string, do func(context.Context, *txn.Tx, member) error) operation {
		return operation{name: "txn, " + name + ": " + what, prepare: func(t *testing.T, b *bench) func() error {
			table := stored(t, b)
			other := first
			other.Seq = 2
			rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), other))(t)
			r := open(t, table)
			return func() error {
				return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { return do(ctx, tx, r) })
			}
		}}
	}
	update := func(ctx context.Context, tx *txn.Tx, r member, keys ...repo.Key) error {
		for _, k := range keys {
			if _, err := r.In(tx).Update(ctx, k, addOne); err != nil {
				return err
			}
		}
		return nil
	}
	return []operation{
		on("Update of one item", func(ctx context.Context, tx *txn.Tx, r member) error { return update(ctx, tx, r, key) }),
		on("Update of two items", func(ctx context.Context, tx *txn.Tx, r member) error { return update(ctx, tx, r, key, second) }),
		on("Update of two items after Prefetch", func(ctx context.Context, tx *txn.Tx, r member) error {
			if err := tx.Prefetch(ctx, r.Keys(key, second)); err != nil {
				return err
			}
			return update(ctx, tx, r, key, second)
		}),
		on("Get and Update", func(ctx context.Context, tx *txn.Tx, r member) error {
			if _, err := r.In(tx).Get(ctx, key); err != nil {
				return err
			}
			return update(ctx, tx, r, second)
		}),
		on("Get of two items", func(ctx context.Context, tx *txn.Tx, r member) error {
			_, err := r.In(tx).Get(ctx, key)
			if err == nil {
				_, err = r.In(tx).Get(ctx, second)
			}
			return err
		}),
		on("Delete and Create", func(ctx context.Context, tx *txn.Tx, r member) error {
			made := first
			made.Seq = 3
			if _, err := r.In(tx).Create(ctx, made); err != nil {
				return err
			}
			return r.In(tx).Delete(ctx, key)
		}),
	}
}

func transactionOperations() (all []operation) {
	all = append(all, strategyInside("nolock", func(t *testing.T, table *repo.Table[item]) member {
		return events{rig.Must(nolock.New(table, nolock.Config{}))(t)}
	})...)
	all = append(all, strategyInside("optimistic", func(t *testing.T, table *repo.Table[item]) member {
		return versions{rig.Must(optimistic.New(table, optimistic.Config{}))(t)}
	})...)
	all = append(all, strategyInside("pessimistic, racing", func(t *testing.T, table *repo.Table[item]) member {
		return locks{rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Owner: "owner", Race: true}))(t)}
	})...)
	all = append(all, strategyInside("pessimistic", func(t *testing.T, table *repo.Table[item]) member {
		return locks{rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Owner: "owner"}))(t)}
	})[1])
	all = append(all, operation{name: "txn.Once: Create, Update under an id, Put", prepare: func(t *testing.T, b *bench) func() error {
		table := stored(t, b)
		events := rig.Must(nolock.New(table, nolock.Config{}))(t)
		versions := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
		return func() error {
			return txn.Once("message").Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				made, other := first, next
				made.Seq, other.Seq = 3, 4
				if _, err := versions.In(tx).Create(ctx, made); err != nil {
					return err
				}
				if _, err := versions.Once("line").In(tx).Update(ctx, key, addOne); err != nil {
					return err
				}
				return events.In(tx).Put(ctx, other)
			})
		}
	}})
	all = append(all, operation{name: "txn: Apply of both, Save and Remove", prepare: func(t *testing.T, b *bench) func() error {
		table := stored(t, b)
		versions, locks := rig.Must(optimistic.New(table, optimistic.Config{}))(t), rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Owner: "owner", Race: true}))(t)
		var made []item
		for seq := range 3 {
			one := first
			one.Seq = 3 + seq
			made = append(made, rig.Must(versions.Create(t.Context(), one))(t))
		}
		add := expression.Add(expression.Name("balance"), expression.Value(1))
		rich := expression.Name("balance").GreaterThan(expression.Value(0))
		return func() error {
			return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				if err := versions.In(tx).Apply(ctx, key, add, rich); err != nil {
					return err
				}
				if err := locks.In(tx).Apply(ctx, repo.Key{Partition: "p", Sort: 3}, add); err != nil {
					return err
				}
				if _, err := versions.In(tx).Save(ctx, made[1]); err != nil {
					return err
				}
				return versions.In(tx).Remove(ctx, made[2])
			})
		}
	}})
	return append(all, operation{name: "txn, nolock: Put, Apply and DeleteAt", prepare: func(t *testing.T, b *bench) func() error {
		r := rig.Must(nolock.New(stored(t, b), nolock.Config{}))(t)
		return func() error {
			return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				view := r.In(tx)
				if err := view.Put(ctx, next); err != nil {
					return err
				}
				if err := view.DeleteAt(ctx, second, nolock.Event{Time: 11, ID: "e2"}); err != nil {
					return err
				}
				third := repo.Key{Partition: "p", Sort: 3}
				return view.Apply(ctx, third, nolock.Event{Time: 11, ID: "e2"}, expression.Set(expression.Name("balance"), expression.Value(3)))
			})
		}
	}})
}

package wire

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// invoice has all roles.
type invoice struct {
	ID      string `dynamodbav:"id" repo:"pk,prefix=I#"`
	Seq     string `dynamodbav:"seq" repo:"sk,prefix=S#"`
	Kind    string `dynamodbav:"kind" repo:"type=invoice"`
	Total   int    `dynamodbav:"total"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Made    int64  `dynamodbav:"made" repo:"created"`
	Changed int64  `dynamodbav:"changed" repo:"updated"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

var (
	invoiceKey = repo.Key{Partition: "p", Sort: "1"}
	oneInvoice = invoice{ID: "p", Seq: "1", Total: 7, At: 10}
)

func more(_ context.Context, i *invoice) error { i.Total++; return nil }

// roleOperations are those whose requests differ for a type with roles.
func roleOperations() (all []operation) {
	add := func(name string, there bool, do func(context.Context, *testing.T, *repo.Table[invoice]) error) {
		all = append(all, operation{name: "roles: " + name, prepare: func(t *testing.T, b *bench) func() error {
			table := rig.Must(repo.NewTable[invoice](b.Client, b.Table, repo.TableConfig{AttemptTimeout: lease}))(t)
			rig.Is(t, table.EnsureTable(t.Context()))
			if there {
				rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), oneInvoice))(t)
			}
			return func() error { return do(t.Context(), t, table) }
		}})
	}
	onNolock := func(name string, there bool, do func(context.Context, *nolock.Repository[invoice]) error) {
		add("nolock: "+name, there, func(ctx context.Context, t *testing.T, table *repo.Table[invoice]) error {
			return do(ctx, rig.Must(nolock.New(table, nolock.Config{}))(t))
		})
	}
	onOptimistic := func(name string, there bool, do func(context.Context, *optimistic.Repository[invoice]) error) {
		add("optimistic: "+name, there, func(ctx context.Context, t *testing.T, table *repo.Table[invoice]) error {
			return do(ctx, rig.Must(optimistic.New(table, optimistic.Config{}))(t))
		})
	}
	onPessimistic := func(name string, cfg pessimistic.Config, do func(context.Context, *pessimistic.Repository[invoice]) error) {
		add("pessimistic: "+name, true, func(ctx context.Context, t *testing.T, table *repo.Table[invoice]) error {
			cfg.Lease, cfg.Owner = lease, "owner"
			return do(ctx, rig.Must(pessimistic.New(table, cfg))(t))
		})
	}
	plus := expression.Add(expression.Name("total"), expression.Value(1))
	add("Query", true, func(ctx context.Context, _ *testing.T, table *repo.Table[invoice]) error {
		for _, err := range table.Query(ctx, "p") {
			if err != nil {
				return err
			}
		}
		return nil
	})
	onNolock("Put", true, func(ctx context.Context, r *nolock.Repository[invoice]) error {
		return r.Put(ctx, invoice{ID: "p", Seq: "1", At: 11})
	})
	onNolock("Apply", false, func(ctx context.Context, r *nolock.Repository[invoice]) error {
		return r.Apply(ctx, invoiceKey, 11, plus)
	})
	onNolock("DeleteAt", true, func(ctx context.Context, r *nolock.Repository[invoice]) error { return r.DeleteAt(ctx, invoiceKey, 11) })
	onOptimistic("Create", false, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		_, err := r.Create(ctx, oneInvoice)
		return err
	})
	onOptimistic("Update", true, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		_, err := r.Update(ctx, invoiceKey, more)
		return err
	})
	onOptimistic("Upsert of a new item", false, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		_, err := r.Upsert(ctx, invoiceKey, func(_ context.Context, i *invoice) error { i.At = 1; return nil })
		return err
	})
	onOptimistic("Save", true, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		_, err := r.Save(ctx, invoice{ID: "p", Seq: "1", At: 10, Total: 8, Version: 1})
		return err
	})
	onOptimistic("Remove", true, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		return r.Remove(ctx, invoice{ID: "p", Seq: "1", Version: 1})
	})
	onOptimistic("Apply", true, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		_, err := r.Apply(ctx, invoiceKey, plus)
		return err
	})
	onOptimistic("Apply in a transaction", true, func(ctx context.Context, r *optimistic.Repository[invoice]) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if _, err := r.In(tx).Create(ctx, invoice{ID: "p", Seq: "2", At: 1}); err != nil {
				return err
			}
			return r.In(tx).Apply(ctx, invoiceKey, plus)
		})
	})
	update := func(ctx context.Context, r *pessimistic.Repository[invoice]) error {
		_, err := r.Update(ctx, invoiceKey, more)
		return err
	}
	onPessimistic("Update, racing", lockedread.Config{Race: true}, update)
	onPessimistic("Update", lockedread.Config{}, update)
	onPessimistic("Upsert, racing", lockedread.Config{Race: true}, func(ctx context.Context, r *pessimistic.Repository[invoice]) error {
		_, err := r.Upsert(ctx, invoiceKey, more)
		return err
	})
	return all
}

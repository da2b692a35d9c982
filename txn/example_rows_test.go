package txn_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

func ExampleTx_Require() {
	type report struct {
		Day   string `dynamodbav:"day" repo:"pk"`
		Sales int    `dynamodbav:"sales"`

		Version int64 `dynamodbav:"version" repo:"version"`
	}
	ctx, client := context.Background(), rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	table, err := repo.NewTable[report](client, "example-reports", repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	reports, err := optimistic.New(table, optimistic.Config{})
	check(err)
	locks, err := mutex.New(client, "example-locks", mutex.Config{})
	check(err)
	check(locks.EnsureTable(ctx))

	write := func(lock *mutex.Lock, r report) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if err := tx.Require(lock); err != nil {
				return err
			}
			_, err := reports.In(tx).Create(ctx, r)
			return err
		})
	}
	lock, err := locks.Lock(ctx, "reports")
	check(err)
	fmt.Println(write(lock, report{Day: "Monday", Sales: 7}))

	// Somebody ends the hold by force, and its holder does not notice.
	check(locks.Break(ctx, "reports", lock.Token()))
	fmt.Println(errors.Is(write(lock, report{Day: "Tuesday", Sales: 8}), repo.ErrLockLost))
	_, err = reports.Get(ctx, repo.Key{Partition: "Tuesday"})
	fmt.Println(errors.Is(err, repo.ErrNotFound))
	// Output:
	// <nil>
	// true
	// true
}

// Orders bring jobs about, and jobs change orders: each with one verdict.
func Example_jobs() {
	type order struct {
		ID    string `dynamodbav:"id" repo:"pk"`
		State string `dynamodbav:"state"`

		Version int64 `dynamodbav:"version" repo:"version"`
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	table, err := repo.NewTable[order](client, "example-orders", repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	orders, err := optimistic.New(table, optimistic.Config{})
	check(err)
	parcels, err := jobs.New[string](client, "example-parcels", jobs.Config{})
	check(err)
	check(parcels.EnsureTable(ctx))

	check(txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if _, err := orders.In(tx).Create(ctx, order{ID: "o-7", State: "paid"}); err != nil {
			return err
		}
		_, err := parcels.In(tx).Enqueue(ctx, "warehouse", "o-7") // if the order is there, and only then
		return err
	}))
	check(parcels.Run(ctx, func(ctx context.Context, job *jobs.Job[string]) error {
		defer cancel() // Run goes on until it is told to end
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			_, err := orders.In(tx).Update(ctx, repo.Key{Partition: job.Value()}, func(_ context.Context, o *order) error {
				o.State = "packed"
				return nil
			})
			if err != nil {
				return err
			}
			return job.DoneIn(tx)
		})
	}))
	packed, err := orders.Get(context.Background(), repo.Key{Partition: "o-7"})
	check(err)
	fmt.Println(packed.State)
	// Output: packed
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

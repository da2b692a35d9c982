package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Order is an item for all three strategies.
type Order struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Status  string `dynamodbav:"status"`
	Total   int    `dynamodbav:"total"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// exampleTable is a table on the tests' engine.
func exampleTable(ctx context.Context, name string) *repo.Table[Order] {
	table, err := repo.NewTable[Order](rig.Client(), name+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	return table
}

// The three strategies change one item, each in its own way, and respect each
// other.
func Example() {
	ctx := context.Background()
	table := exampleTable(ctx, "orders")
	locks, _ := pessimistic.New(table, pessimistic.Config{})
	versions, _ := optimistic.New(table, optimistic.Config{})
	events, _ := nolock.New(table, nolock.Config{})
	key := repo.Key{Partition: "o1"}

	_ = events.Put(ctx, Order{ID: "o1", Status: "placed", At: 100})
	_, _ = versions.Update(ctx, key, func(_ context.Context, o *Order) error { o.Total = 42; return nil })
	order, err := locks.Update(ctx, key, func(_ context.Context, o *Order) error { o.Total++; return nil })
	fmt.Println(order.Status, order.Total, "version", order.Version, err)

	late := events.Put(ctx, Order{ID: "o1", Status: "lost", At: 99})
	fmt.Println(errors.Is(late, repo.ErrStale))
	// Output:
	// placed 43 version 3 <nil>
	// true
}

// The handle form: hold an item, look at it, commit or release.
func Example_handle() {
	ctx := context.Background()
	table := exampleTable(ctx, "handles")
	locker, _ := lockedread.New(table, lockedread.Config{Lease: 10 * time.Second, Owner: "till 7"})
	orders, _ := pessimistic.New(table, pessimistic.Config{})
	_, _ = orders.Create(ctx, Order{ID: "o1", Status: "placed"})

	held, err := locker.Acquire(ctx, repo.Key{Partition: "o1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Release(ctx) //nolint:errcheck // harmless after Commit

	_, err = locker.TryAcquire(ctx, repo.Key{Partition: "o1"})
	var locked *repo.LockedError
	if errors.As(err, &locked) {
		fmt.Println("held by", locked.Owner)
	}
	order := held.Item()
	order.Status = "paid"
	order, err = held.Commit(ctx, order)
	fmt.Println(order.Status, err)
	// Output:
	// held by till 7
	// paid <nil>
}

// Line is a line of an order: the order is the partition.
type Line struct {
	Order   string `dynamodbav:"order" repo:"pk"`
	Number  int    `dynamodbav:"number" repo:"sk"`
	Product string `dynamodbav:"product"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// Reading needs no strategy: the table does it.
func Example_reading() {
	ctx := context.Background()
	table, err := repo.NewTable[Line](rig.Client(), "lines"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	lines, _ := optimistic.New(table, optimistic.Config{})
	for i, product := range []string{"apple", "pear", "plum"} {
		_, _ = lines.Create(ctx, Line{Order: "o1", Number: i + 1, Product: product})
	}

	for line, err := range table.Query(ctx, "o1", repo.SortBetween(2, 3), repo.Descending()) {
		fmt.Println(line.Number, line.Product, err)
	}
	some, err := table.GetMany(ctx, repo.Key{Partition: "o1", Sort: 1}, repo.Key{Partition: "o1", Sort: 9})
	fmt.Println(some[0].Product, some[1] == nil, err)
	// Output:
	// 3 plum <nil>
	// 2 pear <nil>
	// apple true <nil>
}

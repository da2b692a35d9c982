package pessimistic_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// Product is the item of the examples.
type Product struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Stock int    `dynamodbav:"stock"`
}

// products is a repository with ten apples, on the tests' engine.
func products(ctx context.Context, cfg pessimistic.Config) *pessimistic.Repository[Product] {
	table, err := repo.NewTable[Product](rig.Client(), "products"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	r, err := pessimistic.New(table, cfg)
	if err != nil {
		panic(err)
	}
	if _, err := r.Create(ctx, Product{ID: "apple", Stock: 10}); err != nil {
		panic(err)
	}
	return r
}

// A change runs once, under the item's lock.
func ExampleRepository_Update() {
	ctx := context.Background()
	products := products(ctx, pessimistic.Config{})

	soldOut := errors.New("sold out")
	sell := func(n int) error {
		apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(_ context.Context, p *Product) error {
			if p.Stock < n {
				return soldOut // the lock is released, and nothing is written
			}
			p.Stock -= n
			return nil
		})
		fmt.Println(apple.Stock, err)
		return err
	}
	_ = sell(7)
	fmt.Println(errors.Is(sell(7), soldOut))
	// Output:
	// 3 <nil>
	// 0 sold out
	// true
}

// Many callers, in one process or in several, want one item. With Fair they are
// served in the order of arrival; with Combine one write carries the changes of all
// callers of this process that wait.
func ExampleConfig() {
	ctx := context.Background()
	products := products(ctx, pessimistic.Config{Fair: true, Combine: true})

	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(_ context.Context, p *Product) error {
				p.Stock--
				return nil
			})
			if err != nil {
				fmt.Println(err)
			}
		})
	}
	all.Wait()
	apple, err := products.Get(ctx, repo.Key{Partition: "apple"})
	fmt.Println(apple.Stock, err)
	// Output: 2 <nil>
}

// The handle form, where the change does not fit into a function.
func ExampleRepository_Acquire() {
	ctx := context.Background()
	products := products(ctx, pessimistic.Config{})

	held, err := products.Acquire(ctx, repo.Key{Partition: "apple"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer held.Release(ctx) //nolint:errcheck // harmless after Commit

	_, err = products.TryAcquire(ctx, repo.Key{Partition: "apple"})
	fmt.Println("somebody else:", errors.Is(err, repo.ErrLocked))

	apple := held.Item()
	apple.Stock--
	apple, err = held.Commit(ctx, apple)
	fmt.Println(apple.Stock, err)
	// Output:
	// somebody else: true
	// 9 <nil>
}

// A change that needs no read is an expression: one request, and no conflicts.
func ExampleRepository_Apply() {
	ctx := context.Background()
	products := products(ctx, pessimistic.Config{})

	stock := expression.Name("stock")
	take := func(n int) {
		apple, err := products.Apply(ctx, repo.Key{Partition: "apple"},
			expression.Add(stock, expression.Value(-n)), stock.GreaterThanEqual(expression.Value(n)))
		fmt.Println(apple.Stock, err == nil, errors.Is(err, repo.ErrCondition))
	}
	take(7)
	take(7)
	// Output:
	// 3 true false
	// 3 false true
}

// A message that comes twice is taken once.
func ExampleRepository_Once() {
	ctx := context.Background()
	products := products(ctx, pessimistic.Config{})

	for range 2 {
		once := products.Once("message 4711")
		apple, err := once.Update(ctx, repo.Key{Partition: "apple"}, func(_ context.Context, p *Product) error {
			p.Stock--
			return nil
		})
		fmt.Println(apple.Stock, "repeated:", once.Repeated(), err)
	}
	// Output:
	// 9 repeated: false <nil>
	// 9 repeated: true <nil>
}

package optimistic_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// shown

// Customer and Order share a table: the partition of a customer has its orders, too.
type Customer struct {
	ID      string    `dynamodbav:"pk" repo:"pk,prefix=CUSTOMER#"`
	Part    string    `dynamodbav:"sk" repo:"sk"` // "PROFILE"
	Kind    string    `dynamodbav:"kind" repo:"type=customer"`
	Name    string    `dynamodbav:"name"`
	Since   time.Time `dynamodbav:"since" repo:"created"`
	Version int64     `dynamodbav:"version" repo:"version"`
}

// Order is stored under CUSTOMER#<Customer> and ORDER#<ID>.
type Order struct {
	Customer string `dynamodbav:"pk" repo:"pk,prefix=CUSTOMER#"`
	ID       string `dynamodbav:"sk" repo:"sk,prefix=ORDER#"`
	Kind     string `dynamodbav:"kind" repo:"type=order"`
	Total    int    `dynamodbav:"total"`
	Placed   int64  `dynamodbav:"placed" repo:"created,unit=ms"`
	Changed  int64  `dynamodbav:"changed" repo:"updated,unit=ms"`
	Version  int64  `dynamodbav:"version" repo:"version"`
}

// openShop makes a repository for each type, over one table.
func openShop(client repo.Client, table string) (*optimistic.Repository[Customer], *repo.Table[Order], error) {
	customers, err := repo.NewTable[Customer](client, table, repo.TableConfig{})
	if err != nil {
		return nil, nil, err
	}
	orders, err := repo.NewTable[Order](client, table, repo.TableConfig{})
	if err != nil {
		return nil, nil, err
	}
	people, err := optimistic.New(customers, optimistic.Config{})
	return people, orders, err
}

// end of what is shown

// Two types in one table: each is written with its type, its times and the prefixes of
// its keys, and neither is taken for the other.
func Example_roles() {
	ctx := context.Background()
	customers, orders, err := openShop(rig.Client(), "shop"+time.Now().Format("-150405.000000000"))
	if err != nil {
		panic(err)
	}
	if err := orders.EnsureTable(ctx); err != nil {
		panic(err)
	}
	placing, err := optimistic.New(orders, optimistic.Config{})
	if err != nil {
		panic(err)
	}

	ann, err := customers.Create(ctx, Customer{ID: "ann", Part: "PROFILE", Name: "Ann"})
	fmt.Println(ann.ID, ann.Kind, time.Since(ann.Since) < time.Minute, err)
	for i, total := range []int{20, 30} {
		if _, err := placing.Create(ctx, Order{Customer: "ann", ID: fmt.Sprint(i + 1), Total: total}); err != nil {
			panic(err)
		}
	}
	changed, err := placing.Update(ctx, repo.Key{Partition: "ann", Sort: "2"}, func(_ context.Context, o *Order) error {
		o.Total += 5
		return nil
	})
	fmt.Println(changed.Total, changed.Changed >= changed.Placed, err)
	for order, err := range orders.Query(ctx, "ann") { // not the customer
		fmt.Println(order.Kind, order.ID, order.Total, err)
	}

	_, err = customers.Get(ctx, repo.Key{Partition: "ann", Sort: "ORDER#2"})
	var other *repo.TypeError
	fmt.Println(errors.As(err, &other), errors.Is(err, repo.ErrSchema), other.Stored, "is no", other.Type)
	// Output:
	// ann customer true <nil>
	// 35 true <nil>
	// order 1 20 <nil>
	// order 2 35 <nil>
	// true true order is no customer
}

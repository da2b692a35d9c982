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

// An e-mail address belongs to one customer.
func Example_unique() {
	type Customer struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Email   string `dynamodbav:"email" repo:"unique"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	ctx := context.Background()
	check := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	table, err := repo.NewTable[Customer](rig.Client(), "customers"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	customers, err := optimistic.New(table, optimistic.Config{})
	check(err)

	_, err = customers.Create(ctx, Customer{ID: "ann", Email: "ann@example.org"})
	check(err)
	_, err = customers.Create(ctx, Customer{ID: "bob", Email: "ann@example.org"})
	var taken *repo.NotUniqueError
	fmt.Println(errors.As(err, &taken), taken.Field, taken.Owner)

	check(customers.Delete(ctx, repo.Key{Partition: "ann"}))
	_, err = customers.Create(ctx, Customer{ID: "bob", Email: "ann@example.org"})
	fmt.Println(err)
	// Output:
	// true email {"ann"}
	// <nil>
}

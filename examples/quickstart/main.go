// Command quickstart is the first program of the README.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type Product struct {
	ID    string `dynamodbav:"id" repo:"pk"`
	Stock int    `dynamodbav:"stock"`
}

func main() {
	ctx := context.Background()
	db, err := localdb.Start(ctx, localdb.Config{}) // against AWS: dynamodb.NewFromConfig(cfg)
	check(err)
	defer db.Close()
	table, err := repo.NewTable[Product](db.Client(), "products", repo.TableConfig{})
	check(err)
	check(table.EnsureTable(ctx))
	products, err := pessimistic.New(table, pessimistic.Config{})
	check(err)

	_, err = products.Create(ctx, Product{ID: "apple", Stock: 10})
	check(err)
	apple, err := products.Update(ctx, repo.Key{Partition: "apple"}, func(ctx context.Context, p *Product) error {
		p.Stock-- // nobody else changes this apple meanwhile
		return nil
	})
	check(err)
	fmt.Println(apple.ID, apple.Stock)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A program of somebody who uses the library: see .ci/stranger.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

type account struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Balance int    `dynamodbav:"balance"`
}

// deposit adds to an account, which it makes if there is none.
func deposit(ctx context.Context, client repo.Client, id string, amount int) (account, error) {
	table, err := repo.NewTable[account](client, "accounts", repo.TableConfig{})
	if err != nil {
		return account{}, err
	}
	if err := table.EnsureTable(ctx); err != nil {
		return account{}, err
	}
	accounts, err := pessimistic.New(table, pessimistic.Config{})
	if err != nil {
		return account{}, err
	}
	return accounts.Upsert(ctx, repo.Key{Partition: id}, func(_ context.Context, a *account) error {
		a.Balance += amount
		return nil
	})
}

func main() {
	ctx := context.Background()
	db, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	for _, amount := range []int{30, 12} {
		a, err := deposit(ctx, db.Client(), "a1", amount)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.ID, a.Balance)
	}
}

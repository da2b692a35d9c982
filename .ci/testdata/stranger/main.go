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

// open opens the accounts, and makes their table if there is none.
func open(ctx context.Context, client repo.Client, cfg repo.TableConfig) (*pessimistic.Repository[account], error) {
	table, err := repo.NewTable[account](client, "accounts", cfg)
	if err != nil {
		return nil, err
	}
	if err := table.EnsureTable(ctx); err != nil {
		return nil, err
	}
	return pessimistic.New(table, pessimistic.Config{})
}

// deposit adds to an account, which it makes if there is none.
func deposit(ctx context.Context, accounts repo.Repository[account], id string, amount int) (account, error) {
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
	accounts, err := open(ctx, db.Client(), repo.TableConfig{})
	if err != nil {
		log.Fatal(err)
	}
	for _, amount := range []int{30, 12} {
		a, err := deposit(ctx, accounts, "a1", amount)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.ID, a.Balance)
	}
}

package txn_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Purse is the item of the example.
type Purse struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Cents   int    `dynamodbav:"cents"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

// Money goes from one purse to another: both are written, or none.
func ExampleRun() {
	ctx := context.Background()
	table, err := repo.NewTable[Purse](rig.Client(), "purses"+time.Now().Format("-150405.000000000"), repo.TableConfig{})
	if err != nil {
		panic(err)
	}
	if err := table.EnsureTable(ctx); err != nil {
		panic(err)
	}
	purses, err := optimistic.New(table, optimistic.Config{})
	if err != nil {
		panic(err)
	}
	_, _ = purses.Create(ctx, Purse{ID: "anna", Cents: 100})
	_, _ = purses.Create(ctx, Purse{ID: "bert", Cents: 5})

	tooPoor := errors.New("not enough money")
	pay := func(from, to string, cents int) error {
		return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			// Not needed, but one read less: both are read in one request.
			if err := tx.Prefetch(ctx, purses.Keys(repo.Key{Partition: from}, repo.Key{Partition: to})); err != nil {
				return err
			}
			inside := purses.In(tx)
			payer, err := inside.Update(ctx, repo.Key{Partition: from}, func(_ context.Context, p *Purse) error {
				p.Cents -= cents
				return nil
			})
			if err != nil {
				return err
			}
			if payer.Cents < 0 {
				return tooPoor // nothing of the whole is written
			}
			_, err = inside.Update(ctx, repo.Key{Partition: to}, func(_ context.Context, p *Purse) error {
				p.Cents += cents
				return nil
			})
			return err
		})
	}
	fmt.Println(pay("anna", "bert", 70))
	fmt.Println(pay("anna", "bert", 70))
	for _, who := range []string{"anna", "bert"} {
		purse, err := purses.Get(ctx, repo.Key{Partition: who})
		fmt.Println(who, purse.Cents, err)
	}
	// Output:
	// <nil>
	// not enough money
	// anna 30 <nil>
	// bert 75 <nil>
}

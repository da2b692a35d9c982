package once_test

import (
	"context"
	"fmt"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/once"
)

func ExampleDo() {
	ctx := context.Background()
	client := rig.Client() // against AWS: dynamodb.NewFromConfig(cfg)
	payments, err := once.New(client, "example-payments", once.Config{})
	check(err)
	check(payments.EnsureTable(ctx))
	for range 2 { // the message comes again
		receipt, err := once.Do(ctx, payments, "order-7", func(_ context.Context, run once.Run) (string, error) {
			fmt.Println("charging", run.ID)
			return "receipt 1", nil
		})
		check(err)
		fmt.Println(receipt)
	}
	// Output:
	// charging order-7
	// receipt 1
	// receipt 1
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

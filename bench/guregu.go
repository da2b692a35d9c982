package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2"

	"github.com/dynahold/dynahold/internal/load"
)

// guregu is github.com/guregu/dynamo with a condition on the version, as its
// documentation shows conditions: read, update if the version is the one that
// was read, else sleep and do it again.
func guregu() load.Contender {
	return load.Contender{Name: "guregu/dynamo", Prepare: versioned, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		t := dynamo.NewFromIface(client).Table(table)
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			id := items[0].ID
			var wait backoff
			for {
				var got item
				if err := t.Get("id", id).Consistent(true).One(ctx, &got); err != nil {
					return err
				}
				inside(ctx)
				err := t.Update("id", id).
					Set("n", got.N+1).
					Set("version", got.Version+1).
					If("'version' = ?", got.Version).
					Run(ctx)
				if !dynamo.IsCondCheckFailed(err) {
					return err
				}
				if err := wait.sleep(ctx); err != nil {
					return err
				}
			}
		}, nil
	}}
}

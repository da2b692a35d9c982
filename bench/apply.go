package main

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// withoutRead are the contenders that count without a read: a locked change, what
// DynamoDB does by itself, and Apply.
func withoutRead() []load.Contender {
	type applies interface {
		Apply(context.Context, repo.Key, expression.UpdateBuilder, ...expression.ConditionBuilder) (account, error)
	}
	apply := func(name string, open func(*repo.Table[account]) (applies, error)) load.Contender {
		one := expression.Add(expression.Name("n"), expression.Value(1))
		return ours(name, open, func(r applies) load.Change {
			return func(ctx context.Context, items []load.Touched, _ func(context.Context)) error {
				_, err := r.Apply(ctx, repo.Key{Partition: items[0].ID}, one)
				return err
			}
		})
	}
	locked := slices.DeleteFunc(load.Modes(), func(m load.Contender) bool { return m.Name != "pessimistic" && m.Name != "pessimistic, race" })
	return append(locked, unprotected(),
		apply("optimistic, Apply", func(t *repo.Table[account]) (applies, error) { return optimistic.New(t, optimistic.Config{}) }),
		apply("pessimistic, Apply", func(t *repo.Table[account]) (applies, error) { return pessimistic.New(t, pessimistic.Config{}) }),
	)
}

// unprotected adds to the counter and asks nothing: as fast as it can be, and nobody
// who works with a lock or a version knows of it.
func unprotected() load.Contender {
	set, names := aws.String("ADD #n :one"), map[string]string{"#n": "n"}
	return load.Contender{Name: "ADD by hand", Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		return func(ctx context.Context, items []load.Touched, _ func(context.Context)) error {
			_, err := client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
				TableName: &table, Key: key(items[0].ID), UpdateExpression: set, ExpressionAttributeNames: names,
				ExpressionAttributeValues: map[string]types.AttributeValue{":one": number(1)},
			})
			return err
		}, nil
	}}
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
)

// Messages that come to one item at random moments, so many a second, and are handled by
// eight goroutines of a process. Each brings an id that is remembered for an hour.
func identified() []scenario {
	at := func(name string, rate int, span time.Duration) scenario {
		return scenario{"ids, " + name + " a second", load.Workload{
			Workers: 8, Size: 100, Every: time.Second / time.Duration(rate), Span: span, Warmup: time.Second,
		}, false, remembering}
	}
	return []scenario{at("1", 1, time.Hour), at("10", 10, 5*time.Minute), at("100", 100, 30*time.Second)}
}

// remembering are those who handle messages that may come again.
func remembering() []load.Contender {
	return append([]load.Contender{recordInTransaction()}, handlers()...)
}

const recordTogether = "record in a transaction by hand"

// recordInTransaction reads the item and writes it, if its version is as read, in one
// transaction with a record of the message, if there is none; else it sleeps and begins anew.
func recordInTransaction() load.Contender {
	return load.Contender{Name: recordTogether, Prepare: versioned, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			message := "message-" + rand.Text()
			var wait backoff
			for {
				err := writeWithRecord(ctx, client, table, items[0].ID, message, inside)
				if !cancelled(err) {
					return err
				}
				if recorded(err) {
					return nil // an attempt whose answer was lost
				}
				if err := wait.sleep(ctx); err != nil {
					return err
				}
			}
		}, nil
	}}
}

func writeWithRecord(ctx context.Context, client *dynamodb.Client, table, id, message string, inside func(context.Context)) error {
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &table, Key: key(id), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return err
	}
	var got item
	if err := attributevalue.UnmarshalMap(out.Item, &got); err != nil {
		return err
	}
	inside(ctx)
	_, err = client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		{Put: &types.Put{
			TableName: &table, ConditionExpression: makeIf,
			Item: map[string]types.AttributeValue{"id": str(message), "expiration": number(time.Now().Add(recordLife).Unix())},
		}},
		{Update: &types.Update{
			TableName: &table, Key: key(id), UpdateExpression: versionSet, ConditionExpression: versionIf, ExpressionAttributeNames: versionNames,
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":n": number(int64(got.N + 1)), ":seen": number(int64(got.Version)), ":next": number(int64(got.Version + 1)),
			},
		}},
	}})
	return err
}

// recorded reports whether a transaction was refused because its message has a record.
func recorded(err error) bool {
	var c *types.TransactionCanceledException
	return errors.As(err, &c) && len(c.CancellationReasons) > 0 && aws.ToString(c.CancellationReasons[0].Code) == "ConditionalCheckFailed"
}

package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
)

const versionName = "version by hand"

// version is optimistic locking with the plain SDK. A failed write returns the
// item, with which the next attempt is made at once; after some of them the
// caller sleeps and reads again, because what it has is stale by then.
func version() load.Contender {
	return load.Contender{Name: versionName, Prepare: versioned, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		v := versionCheck{client, table}
		return v.change, nil
	}}
}

// atOnce is how often one read item or its successors are tried without a
// sleep.
const atOnce = 3

var (
	versionSet   = aws.String("SET #n = :n, #v = :next")
	versionIf    = aws.String("#v = :seen")
	versionNames = map[string]string{"#n": "n", "#v": "version"}
)

type versionCheck struct {
	client *dynamodb.Client
	table  string
}

func (v versionCheck) change(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
	var wait backoff
	for {
		out, err := v.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &v.table, Key: key(items[0].ID), ConsistentRead: aws.Bool(true)})
		if err != nil {
			return err
		}
		image := out.Item
		for range atOnce {
			var got item
			if err := attributevalue.UnmarshalMap(image, &got); err != nil {
				return err
			}
			got.N++
			inside(ctx)
			err := v.write(ctx, got)
			var failed *types.ConditionalCheckFailedException
			if !errors.As(err, &failed) {
				return err
			}
			image = failed.Item
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

func (v versionCheck) write(ctx context.Context, changed item) error {
	_, err := v.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &v.table,
		Key:                      key(changed.ID),
		UpdateExpression:         versionSet,
		ConditionExpression:      versionIf,
		ExpressionAttributeNames: versionNames,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":n": number(int64(changed.N)), ":seen": number(int64(changed.Version)), ":next": number(int64(changed.Version) + 1),
		},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	return err
}

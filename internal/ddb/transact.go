package ddb

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
)

// Transactor is what transactions need of *dynamodb.Client.
type Transactor interface {
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
}

// Transact sends writes that are applied all or none. All attempts carry one
// ClientRequestToken: the service answers a repeated one that was applied with
// success, for ten minutes, so a failed condition is about all attempts.
// [Result.Images] then has, for each write whose condition failed, its item.
func (t *Table) Transact(ctx context.Context, client Transactor, opt Options, writes ...types.TransactWriteItem) Result {
	token := opt.Token
	if token == "" {
		token = rand.Text()
	}
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token, TransactItems: writes}
	res := t.send(ctx, "TransactWriteItems", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := client.TransactWriteItems(ctx, in, a.options)
		if err == nil {
			a.answered(out.ResultMetadata)
		}
		return nil, err
	})
	for i, image := range res.Images {
		switch {
		case len(image.Item) > 0:
			t.endpoint.images.Store(true)
		case image.Failed && i < len(writes) && writes[i].Put != nil: // see PutOf
			return t.imageless(res)
		}
	}
	return res
}

// UpdateOf is an update as a part of a transaction.
func UpdateOf(in *dynamodb.UpdateItemInput) types.TransactWriteItem {
	return types.TransactWriteItem{Update: &types.Update{
		TableName: in.TableName, Key: in.Key, UpdateExpression: in.UpdateExpression, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}

// DeleteOf is a delete as a part of a transaction.
func DeleteOf(in *dynamodb.DeleteItemInput) types.TransactWriteItem {
	return types.TransactWriteItem{Delete: &types.Delete{
		TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}
}

// PutOf is, as a part of a transaction, the making of an item that must not
// exist.
func (t *Table) PutOf(item Item) types.TransactWriteItem {
	cond := "attribute_not_exists(#pk)"
	return types.TransactWriteItem{Put: &types.Put{
		TableName: &t.Name, Item: item, ConditionExpression: &cond, ExpressionAttributeNames: map[string]string{"#pk": t.Partition},
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// Image is what the nth write of a transaction found where its condition
// failed; failed is false for a write whose condition held.
type Image struct {
	Failed bool
	Item   Item // empty: none exists
}

const conditionalCheckFailed = "ConditionalCheckFailed"

// transactionFailed returns the images of a transaction that a condition
// cancelled.
func transactionFailed(err error) ([]Image, bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil, false
	}
	images := make([]Image, len(cancelled.CancellationReasons))
	for i, r := range cancelled.CancellationReasons {
		images[i] = Image{Failed: aws.ToString(r.Code) == conditionalCheckFailed, Item: r.Item}
	}
	return images, slices.ContainsFunc(images, func(i Image) bool { return i.Failed })
}

// Throttled reports whether the service refused a request because there were too
// many: it may be sent again later.
func Throttled(err error) bool {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return false
	}
	_, busy := retry.DefaultThrottleErrorCodes[api.ErrorCode()]
	return busy
}

// Conflicted reports whether a transaction was cancelled because of another one
// on the same items: nothing was written, and it may be tried again.
func Conflicted(err error) bool {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		return slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			switch aws.ToString(r.Code) {
			case "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded":
				return true
			}
			return false
		})
	}
	var inProgress *types.TransactionInProgressException
	var conflict *types.TransactionConflictException
	return errors.As(err, &inProgress) || errors.As(err, &conflict)
}

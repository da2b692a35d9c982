package ddb

import (
	"context"
	"errors"
	"slices"
	"strings"

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
// success, for ten minutes, so a failed condition is about all attempts; and none is sent
// that could come behind that.
// [Result.Images] then has, for each write whose condition failed, its item.
func (t *Table) Transact(ctx context.Context, client Transactor, opt Options, writes ...types.TransactWriteItem) Result {
	if opt.Sending == nil {
		opt.Sending = NewSending("", 0)
	}
	in := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &opt.Sending.token, TransactItems: writes}
	res := t.send(ctx, "TransactWriteItems", opt, func(ctx context.Context, a *attempt) (Item, error) {
		t.Observe.Tables(ctx, func() []string { return tablesOf(writes) })
		a.of(len(writes))
		out, err := client.TransactWriteItems(ctx, in, a.options)
		if err == nil {
			a.answered(out.ResultMetadata)
		}
		return nil, ofWrites(writes, err)
	})
	for i, image := range res.Images {
		switch {
		case len(image.Item) > 0:
			t.endpoint.images.Store(true)
		case image.Failed && i < len(writes) && (writes[i].Put != nil || slices.Contains(opt.OnItems, i)): // see PutOf
			return t.imageless(res)
		}
	}
	return res
}

// tablesOf are the tables that a transaction touches.
func tablesOf(writes []types.TransactWriteItem) (names []string) {
	for _, w := range writes {
		table, _ := partOf(w)
		if name := aws.ToString(table); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Alone sends a part of a transaction as a request of its own. Its image is that of
// a transaction of one.
func (t *Table) Alone(ctx context.Context, opt Options, part types.TransactWriteItem) (res Result) {
	opt.OnItem = slices.Contains(opt.OnItems, 0)
	if u := part.Update; u != nil {
		res = t.Update(ctx, &dynamodb.UpdateItemInput{
			TableName: u.TableName, Key: u.Key, UpdateExpression: u.UpdateExpression, ConditionExpression: u.ConditionExpression,
			ExpressionAttributeNames: u.ExpressionAttributeNames, ExpressionAttributeValues: u.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: u.ReturnValuesOnConditionCheckFailure,
		}, opt)
	} else {
		d := part.Delete
		res = t.Delete(ctx, &dynamodb.DeleteItemInput{
			TableName: d.TableName, Key: d.Key, ConditionExpression: d.ConditionExpression,
			ExpressionAttributeNames: d.ExpressionAttributeNames, ExpressionAttributeValues: d.ExpressionAttributeValues,
			ReturnValuesOnConditionCheckFailure: d.ReturnValuesOnConditionCheckFailure,
		}, opt)
	}
	if res.Outcome == Condition {
		res.Images = []Image{{Failed: true, Item: res.Image}}
	}
	return res
}

// TransactReader is what reading at one moment needs of *dynamodb.Client.
type TransactReader interface {
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
}

// TransactGet reads items, of this table and others, as they were at one moment.
// items has one for each read, empty where there was none.
func (t *Table) TransactGet(ctx context.Context, client TransactReader, opt Options, reads ...types.TransactGetItem) (items []Item, _ Result) {
	in := &dynamodb.TransactGetItemsInput{TransactItems: reads}
	opt.NoGrace = true
	res := t.send(ctx, "TransactGetItems", opt, func(ctx context.Context, a *attempt) (Item, error) {
		a.of(len(reads))
		out, err := client.TransactGetItems(ctx, in, a.options)
		if err != nil {
			return nil, err
		}
		a.answered(out.ResultMetadata)
		if len(out.Responses) != len(reads) {
			return nil, &ReplyError{errNoAttributes}
		}
		items = make([]Item, len(reads))
		for i, r := range out.Responses {
			if items[i], err = shownOf(reads[i].Get.Key, r.Item, nil); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	return items, res
}

// GetOf is the reading of an item as a part of [Table.TransactGet].
func (t *Table) GetOf(key Item) types.TransactGetItem {
	return types.TransactGetItem{Get: &types.Get{TableName: &t.Name, Key: key}}
}

// Check is, as a part of a transaction, the write's condition alone.
func (w *Write) Check(key Item) (types.TransactWriteItem, error) {
	in, err := w.Update(key)
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
		TableName: in.TableName, Key: in.Key, ConditionExpression: in.ConditionExpression,
		ExpressionAttributeNames: in.ExpressionAttributeNames, ExpressionAttributeValues: in.ExpressionAttributeValues,
		ReturnValuesOnConditionCheckFailure: in.ReturnValuesOnConditionCheckFailure,
	}}, nil
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

// Put is, as a part of a transaction, the making of an item, in the place of one that
// meets the write's conditions.
func (w *Write) Put(item Item) types.TransactWriteItem {
	cond := string(w.cond)
	put := &types.Put{
		TableName: &w.table.Name, Item: item, ConditionExpression: &cond, ExpressionAttributeNames: w.names,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if len(w.values) > 0 {
		put.ExpressionAttributeValues = w.values
	}
	return types.TransactWriteItem{Put: put}
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
	// Busy is why nothing was found out about the write's condition: others were at the
	// item, or there were too many requests.
	Busy error
}

const conditionalCheckFailed = "ConditionalCheckFailed"

// transactionFailed returns the images of a transaction that a condition
// cancelled.
func transactionFailed(err error) ([]Image, bool) {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil, false
	}
	images, reasons := make([]Image, len(cancelled.CancellationReasons)), Reasons(err)
	for i, r := range cancelled.CancellationReasons {
		images[i] = Image{Failed: aws.ToString(r.Code) == conditionalCheckFailed, Item: r.Item}
		if busy(aws.ToString(r.Code)) {
			images[i].Busy = reasons[i]
		}
	}
	return images, slices.ContainsFunc(images, func(i Image) bool { return i.Failed })
}

// codesOf are the codes of what cancelled a transaction; nil: it was not cancelled.
func codesOf(err error) []string {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil
	}
	codes := make([]string, len(cancelled.CancellationReasons))
	for i, r := range cancelled.CancellationReasons {
		codes[i] = aws.ToString(r.Code)
	}
	return codes
}

// Reasons are why each item of a cancelled transaction stood in its way, as the
// error that a request for that item alone would have had; nil for an item that did
// not. They are nil for another error. A failed condition is none of them: it is in
// [Result.Images].
func Reasons(err error) []error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return nil
	}
	reasons := make([]error, len(cancelled.CancellationReasons))
	for i, r := range cancelled.CancellationReasons {
		code := aws.ToString(r.Code)
		switch code {
		case "", "None", conditionalCheckFailed:
			continue
		case "ValidationError", "ThrottlingError":
			code = strings.TrimSuffix(code, "Error")
		}
		reasons[i] = &smithy.GenericAPIError{Code: code + "Exception", Message: aws.ToString(r.Message), Fault: smithy.FaultClient}
	}
	return reasons
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
// on the same items: this request has written nothing, and it may be sent again. The other
// one may be a copy of it.
func Conflicted(err error) bool {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		return slices.ContainsFunc(cancelled.CancellationReasons, func(r types.CancellationReason) bool {
			return busy(aws.ToString(r.Code))
		})
	}
	var inProgress *types.TransactionInProgressException
	return errors.As(err, &inProgress) || Ongoing(err)
}

// busy reports whether a reason passes.
func busy(code string) bool {
	return code == "TransactionConflict" || code == "ThrottlingError" || code == "ProvisionedThroughputExceeded"
}

// Ongoing reports whether a write of one item was refused because a transaction was
// at it: nothing was written.
func Ongoing(err error) bool {
	var conflict *types.TransactionConflictException
	return errors.As(err, &conflict)
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
)

// The article's pattern is what every rate is compared with.
const articleName = "article by hand"

// article is the pattern of "Practical DynamoDB - Locking Reads" with the plain
// SDK: one request locks and reads, one writes and unlocks.
func article() load.Contender {
	return load.Contender{Name: articleName, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		a := &articleLock{client: client, table: table, process: rand.Text()[:8]}
		return a.change, nil
	}}
}

const articleLease = 30 * time.Second

// Fixed expressions, as a program would have them.
var (
	articleLockSet   = aws.String("SET lockedBy = :me, lockTime = :until")
	articleLockIf    = aws.String("attribute_not_exists(lockTime) OR lockTime < :now")
	articleCommitSet = aws.String("SET #n = :n REMOVE lockedBy, lockTime")
	articleCommitIf  = aws.String("lockedBy = :me AND lockTime > :now")
	articleNames     = map[string]string{"#n": "n"}
)

type articleLock struct {
	client  *dynamodb.Client
	table   string
	process string
	calls   atomic.Int64 // callers of one process must not take each other for themselves
}

func (a *articleLock) change(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
	me := str(a.process + "-" + strconv.FormatInt(a.calls.Add(1), 36))
	var wait backoff
	for {
		locked, err := lockAndRead[item](ctx, a, items[0].ID, me)
		if err == nil {
			locked.N++
			inside(ctx)
			err = a.commit(ctx, locked, me)
		}
		if !conditionFailed(err) {
			return err
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

func lockAndRead[T any](ctx context.Context, a *articleLock, id string, me types.AttributeValue) (got T, err error) {
	now := time.Now()
	out, err := a.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:           &a.table,
		Key:                 key(id),
		UpdateExpression:    articleLockSet,
		ConditionExpression: articleLockIf,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me": me, ":now": number(now.Unix()), ":until": number(now.Add(articleLease).Unix()),
		},
		ReturnValues: types.ReturnValueAllNew,
	})
	if err != nil {
		return got, err
	}
	return got, attributevalue.UnmarshalMap(out.Attributes, &got)
}

func (a *articleLock) commit(ctx context.Context, changed item, me types.AttributeValue) error {
	_, err := a.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                &a.table,
		Key:                      key(changed.ID),
		UpdateExpression:         articleCommitSet,
		ConditionExpression:      articleCommitIf,
		ExpressionAttributeNames: articleNames,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":me": me, ":now": number(time.Now().Unix()), ":n": number(int64(changed.N)),
		},
	})
	return err
}

func conditionFailed(err error) bool {
	var failed *types.ConditionalCheckFailedException
	return errors.As(err, &failed)
}

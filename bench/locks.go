package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
)

// byLocks locks every item by the article's pattern, in the order of their keys, so
// that nobody waits in a circle, and then writes and unlocks all of them with one
// transaction.
func byLocks() load.Contender {
	return load.Contender{Name: "locks by hand", Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		l := &sortedLocks{articleLock{client: client, table: table, process: rand.Text()[:8]}}
		return l.change, nil
	}}
}

type sortedLocks struct{ articleLock }

var (
	unlockSet   = aws.String("SET #n = :n, #b = :b REMOVE lockedBy, lockTime")
	unlockNames = map[string]string{"#n": "n", "#b": "balance"}
)

func (l *sortedLocks) change(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
	me := str(l.process + "-" + strconv.FormatInt(l.calls.Add(1), 36))
	writes := making(l.table, items)
	if len(writes) > 0 {
		items = items[:len(items)-1]
	}
	items = slices.SortedFunc(slices.Values(items), func(a, b load.Touched) int { return cmp.Compare(a.ID, b.ID) })
	for _, i := range items {
		a, err := l.wait(ctx, i.ID, me)
		if err != nil {
			return err
		}
		a.move(i.Move)
		writes = append(writes, types.TransactWriteItem{Update: &types.Update{
			TableName: &l.table, Key: key(i.ID),
			UpdateExpression: unlockSet, ConditionExpression: articleCommitIf, ExpressionAttributeNames: unlockNames,
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":me": me, ":now": number(time.Now().Unix()), ":n": number(int64(a.N)), ":b": number(int64(a.Balance)),
			},
		}})
	}
	inside(ctx)
	var wait backoff
	for {
		_, err := l.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: writes})
		if !cancelled(err) { // by throttling: the locks are ours
			return err
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

// wait tries until the lock is taken.
func (l *sortedLocks) wait(ctx context.Context, id string, me types.AttributeValue) (got account, err error) {
	var wait backoff
	for {
		got, err = lockAndRead[account](ctx, &l.articleLock, id, me)
		var conflict *types.TransactionConflictException
		if !conditionFailed(err) && !errors.As(err, &conflict) {
			return got, err
		}
		if err := wait.sleep(ctx); err != nil {
			return got, err
		}
	}
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// handlers apply messages, each of which has an id: with a record of the id in an item
// of its own, as if each came once only, and by Once.
func handlers() (contenders []load.Contender) {
	for _, strategy := range []struct {
		name string
		open func(*repo.Table[account]) (plain repo.Repository[account], once func(id string) repo.Repository[account], err error)
	}{
		{"optimistic", func(t *repo.Table[account]) (repo.Repository[account], func(string) repo.Repository[account], error) {
			r, err := optimistic.New(t, optimistic.Config{})
			return r, func(id string) repo.Repository[account] { return r.Once(id) }, err
		}},
		{"pessimistic", func(t *repo.Table[account]) (repo.Repository[account], func(string) repo.Repository[account], error) {
			r, err := pessimistic.New(t, pessimistic.Config{})
			return r, func(id string) repo.Repository[account] { return r.Once(id) }, err
		}},
	} {
		handler := func(name string, handle func(context.Context, handling) error) load.Contender {
			return load.Contender{Name: strategy.name + ", " + name, Prepare: versioned, Unknown: unknown, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
				t, err := repo.NewTable[account](client, table, repo.TableConfig{})
				if err != nil {
					return nil, err
				}
				plain, once, err := strategy.open(t)
				if err != nil {
					return nil, err
				}
				return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
					return handle(ctx, handling{rand.Text(), plain, once, idempotency{client, table}, func(r repo.Repository[account]) error {
						_, err := r.Update(ctx, repo.Key{Partition: items[0].ID}, func(ctx context.Context, a *account) error {
							a.N++
							inside(ctx)
							return nil
						})
						return err
					}})
				}, nil
			}}
		}
		contenders = append(contenders,
			handler(recordByHand, func(ctx context.Context, h handling) error {
				return h.records.once(ctx, h.message, func() error { return h.change(h.plain) })
			}),
			handler("no id", func(_ context.Context, h handling) error { return h.change(h.plain) }),
			handler("Once", func(_ context.Context, h handling) error { return h.change(h.once(h.message)) }),
		)
	}
	return contenders
}

const recordByHand = "record by hand"

// handling is what it takes to handle one message.
type handling struct {
	message string
	plain   repo.Repository[account]
	once    func(id string) repo.Repository[account]
	records idempotency
	change  func(repo.Repository[account]) error
}

// idempotency is the pattern of Powertools for AWS Lambda by hand: a record of the id
// says that the message is in progress, and then that it is completed. The records are
// in the table of the items here, which costs the same as one of their own.
type idempotency struct {
	client *dynamodb.Client
	table  string
}

const recordLife = time.Hour

var (
	recordIf    = aws.String("attribute_not_exists(id) OR #expires < :now OR (#status = :progress AND in_progress_expiration < :nowms)")
	recordSet   = aws.String("SET #data = :data, #expires = :expires, #status = :done")
	recordNames = map[string]string{"#status": "status", "#expires": "expiration", "#data": "data"}
)

func (d idempotency) once(ctx context.Context, message string, handle func() error) error {
	now := time.Now()
	id := "message-" + message
	_, err := d.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &d.table,
		Item: map[string]types.AttributeValue{
			"id": str(id), "status": str("INPROGRESS"), "expiration": number(now.Add(recordLife).Unix()),
			"in_progress_expiration": number(now.Add(time.Minute).UnixMilli()),
		},
		ConditionExpression:      recordIf,
		ExpressionAttributeNames: map[string]string{"#status": "status", "#expires": "expiration"},
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":now": number(now.Unix()), ":nowms": number(now.UnixMilli()), ":progress": str("INPROGRESS"),
		},
	})
	if err != nil {
		return err
	}
	if err := handle(); err != nil {
		_, deleted := d.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: &d.table, Key: key(id)})
		return errors.Join(err, deleted)
	}
	_, err = d.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &d.table, Key: key(id),
		UpdateExpression: recordSet, ExpressionAttributeNames: recordNames,
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":data": str("{}"), ":done": str("COMPLETED"), ":expires": number(time.Now().Add(recordLife).Unix()),
		},
	})
	return err
}

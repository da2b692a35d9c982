package main

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"github.com/dynahold/dynahold/internal/load"
)

// byTransactions reads all items with one request and writes them with another one,
// if their versions are as read; else it sleeps and begins anew. The plain SDK.
func byTransactions() load.Contender {
	return load.Contender{Name: "transactions by hand", Prepare: versioned, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		t := transactions{client, table}
		return t.change, nil
	}}
}

type transactions struct {
	client *dynamodb.Client
	table  string
}

var (
	moveSet   = aws.String("SET #n = :n, #b = :b, #v = :next")
	moveNames = map[string]string{"#n": "n", "#b": "balance", "#v": "version"}
	makeIf    = aws.String("attribute_not_exists(id)")
)

func (t transactions) change(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
	var wait backoff
	for {
		accounts, err := t.read(ctx, items)
		if err == nil {
			inside(ctx)
			err = t.write(ctx, items, accounts)
		}
		if !cancelled(err) {
			return err
		}
		if err := wait.sleep(ctx); err != nil {
			return err
		}
	}
}

func (t transactions) read(ctx context.Context, items []load.Touched) (accounts []account, err error) {
	in := &dynamodb.TransactGetItemsInput{}
	for _, i := range items {
		if !i.New {
			in.TransactItems = append(in.TransactItems, types.TransactGetItem{Get: &types.Get{TableName: &t.table, Key: key(i.ID)}})
		}
	}
	out, err := t.client.TransactGetItems(ctx, in)
	if err != nil {
		return nil, err
	}
	accounts = make([]account, len(out.Responses))
	for n, r := range out.Responses {
		if err := attributevalue.UnmarshalMap(r.Item, &accounts[n]); err != nil {
			return nil, err
		}
	}
	return accounts, nil
}

// write writes the accounts, and makes the item that is new, if any: it is the last.
func (t transactions) write(ctx context.Context, items []load.Touched, accounts []account) error {
	in := &dynamodb.TransactWriteItemsInput{}
	for n, a := range accounts {
		a.move(items[n].Move)
		in.TransactItems = append(in.TransactItems, types.TransactWriteItem{Update: &types.Update{
			TableName: &t.table, Key: key(a.ID),
			UpdateExpression: moveSet, ConditionExpression: versionIf, ExpressionAttributeNames: moveNames,
			ExpressionAttributeValues: map[string]types.AttributeValue{
				":n": number(int64(a.N)), ":b": number(int64(a.Balance)), ":seen": number(a.Version), ":next": number(a.Version + 1),
			},
		}})
	}
	in.TransactItems = append(in.TransactItems, making(t.table, items)...)
	_, err := t.client.TransactWriteItems(ctx, in)
	return err
}

// making is the part of a transaction that makes the item that is new, if any.
func making(table string, items []load.Touched) []types.TransactWriteItem {
	last := items[len(items)-1]
	if !last.New {
		return nil
	}
	made, _ := attributevalue.MarshalMap(account{ID: last.ID, N: 1, Balance: last.Move, Version: 1}) // nothing in it can fail
	return []types.TransactWriteItem{{Put: &types.Put{TableName: &table, Item: made, ConditionExpression: makeIf}}}
}

// cancelled reports whether a transaction was refused because of others.
func cancelled(err error) bool {
	var c *types.TransactionCanceledException
	return errors.As(err, &c)
}

// guregusTransactions are those of github.com/guregu/dynamo, with conditions on the
// versions.
func guregusTransactions() load.Contender {
	return load.Contender{Name: "guregu/dynamo, transactions", Prepare: versioned, Open: func(_ context.Context, client *dynamodb.Client, table string) (load.Change, error) {
		db := dynamo.NewFromIface(client)
		t := db.Table(table)
		once := func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			accounts := make([]account, len(items))
			reads, writes := db.GetTx(), db.WriteTx().Idempotent(true)
			for n, i := range items {
				if !i.New {
					reads.GetOne(t.Get("id", i.ID), &accounts[n])
				}
			}
			if err := reads.Run(ctx); err != nil {
				return err
			}
			inside(ctx)
			for n, i := range items {
				a := &accounts[n]
				a.move(i.Move)
				if i.New {
					a.ID, a.Version = i.ID, 1
					writes.Put(t.Put(a).If("attribute_not_exists('id')"))
				} else {
					writes.Update(t.Update("id", i.ID).Set("n", a.N).Set("balance", a.Balance).Set("version", a.Version+1).If("'version' = ?", a.Version))
				}
			}
			return writes.Run(ctx)
		}
		return func(ctx context.Context, items []load.Touched, inside func(context.Context)) error {
			var wait backoff
			for {
				if err := once(ctx, items, inside); !cancelled(err) {
					return err
				}
				if err := wait.sleep(ctx); err != nil {
					return err
				}
			}
		}, nil
	}}
}

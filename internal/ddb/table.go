package ddb

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/telemetry"
)

// Table sends requests for one table.
type Table struct {
	Client  Client
	Name    string
	Timeout time.Duration       // of one attempt
	Observe *telemetry.Observer // nil: nobody is told
	// Classify gives an error its meaning in the words of users, where it leaves
	// this package or package protocol: once, and nowhere else. Never nil.
	Classify func(error) error
	// Saw is shown each item that an answer has brought; nil: nobody wants to see them.
	Saw func(Item)

	endpoint  endpoint
	Partition string   // name of the partition key
	Sort      string   // name of the sort key, "" without one
	Mapped    []string // attributes of the user's type, keys left out
}

// Update sends a conditional UpdateItem.
func (t *Table) Update(ctx context.Context, in *dynamodb.UpdateItemInput, opt Options) Result {
	res := t.withImage(ctx, in.Key, opt, t.send(ctx, "UpdateItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := t.Client.UpdateItem(ctx, in, a.options)
		if err != nil {
			return shownOf(in.Key, nil, err)
		}
		a.answered(out.ResultMetadata)
		if in.ReturnValues == types.ReturnValueAllNew && len(out.Attributes) == 0 {
			return nil, &ReplyError{errNoAttributes} // the item has at least its key
		}
		return shownOf(in.Key, out.Attributes, nil)
	}))
	return t.Looked(ctx, in.Key, opt.Stands, res)
}

// Delete sends a conditional DeleteItem.
func (t *Table) Delete(ctx context.Context, in *dynamodb.DeleteItemInput, opt Options) Result {
	res := t.withImage(ctx, in.Key, opt, t.send(ctx, "DeleteItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := t.Client.DeleteItem(ctx, in, a.options)
		if err == nil {
			a.answered(out.ResultMetadata)
		}
		return shownOf(in.Key, nil, err)
	}))
	return t.Looked(ctx, in.Key, opt.Stands, res)
}

// Get reads an item with a consistent read. It cannot change anything, so the
// verdict of its error is always "not applied".
func (t *Table) Get(ctx context.Context, key Item) (Item, error) {
	res := t.Read(ctx, key, Options{})
	return res.Item, res.Err
}

// Read is Get with options. Its Result has an item, or the error.
func (t *Table) Read(ctx context.Context, key Item, opt Options) Result {
	consistent := !opt.Stale
	in := &dynamodb.GetItemInput{TableName: &t.Name, Key: key, ConsistentRead: &consistent}
	opt.NoGrace = true
	return t.send(ctx, "GetItem", opt, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := t.Client.GetItem(ctx, in, a.options)
		if err != nil {
			return nil, err
		}
		a.answered(out.ResultMetadata)
		return shownOf(key, out.Item, nil)
	})
}

// saw shows an item to whoever wants to see it.
func (t *Table) saw(item Item) {
	if t.Saw != nil && len(item) > 0 {
		t.Saw(item)
	}
}

// ReadWith sends a request that changes no item, such as a query or the description
// of a table, by the same policy and with the same explanation of errors. The output of
// the SDK that call returns is looked at here.
func (t *Table) ReadWith(ctx context.Context, op string, call func(context.Context, func(*dynamodb.Options)) (any, error)) error {
	return t.send(ctx, op, Options{NoGrace: true}, func(ctx context.Context, a *attempt) (Item, error) {
		out, err := call(ctx, a.options)
		if err != nil {
			return nil, err
		}
		if of, ok := out.(*dynamodb.DescribeTableOutput); ok && of.Table != nil && of.Table.TableName != nil && !t.named(*of.Table.TableName) {
			return nil, &ReplyError{errAnother}
		}
		return nil, a.took(out)
	}).Err
}

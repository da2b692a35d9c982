package costs_test

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// billed counts what the engine says that requests cost; of one that was refused
// it says nothing.
type billed struct {
	*dynamodb.Client
	requests      atomic.Int64
	reads, writes atomic.Int64 // in tenths of a unit
}

func (c *billed) add(to *atomic.Int64, all ...types.ConsumedCapacity) {
	c.requests.Add(1)
	for _, one := range all {
		to.Add(int64(10 * aws.ToFloat64(one.CapacityUnits)))
	}
}

func one(c *types.ConsumedCapacity) (all []types.ConsumedCapacity) {
	if c != nil {
		all = append(all, *c)
	}
	return all
}

func (c *billed) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := c.Client.UpdateItem(ctx, in, o...)
	if err == nil {
		c.add(&c.writes, one(out.ConsumedCapacity)...)
	}
	return out, err
}

func (c *billed) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := c.Client.DeleteItem(ctx, in, o...)
	if err == nil {
		c.add(&c.writes, one(out.ConsumedCapacity)...)
	}
	return out, err
}

func (c *billed) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := c.Client.TransactWriteItems(ctx, in, o...)
	if err != nil {
		c.add(&c.writes) // its units are not told
		return out, err
	}
	c.add(&c.writes, out.ConsumedCapacity...)
	return out, err
}

func (c *billed) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := c.Client.GetItem(ctx, in, o...)
	if err == nil {
		c.add(&c.reads, one(out.ConsumedCapacity)...)
	}
	return out, err
}

func (c *billed) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := c.Client.Query(ctx, in, o...)
	if err == nil {
		c.add(&c.reads, one(out.ConsumedCapacity)...)
	}
	return out, err
}

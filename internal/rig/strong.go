package rig

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Strong is a client of a global table with strong consistency.
type Strong struct{ *dynamodb.Client }

// DescribeTable says that it is one.
func (c Strong) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.Client.DescribeTable(ctx, in, o...)
	if err == nil {
		out.Table.MultiRegionConsistency = types.MultiRegionConsistencyStrong
	}
	return out, err
}

// TransactWriteItems asks for what no service has, which refuses it as this one
// would.
func (c Strong) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	bad := *in
	bad.TransactItems = nil
	for range 101 {
		bad.TransactItems = append(bad.TransactItems, in.TransactItems[0])
	}
	out, err := c.Client.TransactWriteItems(ctx, &bad, o...)
	if err == nil {
		err = errors.New("it was not refused")
	}
	return out, err
}

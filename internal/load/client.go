package load

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
)

// newClient makes the client of one process. It keeps the SDK's retry policy,
// but not its budget for retries: a rate limiter would be shared by workers
// that stand for strangers. Credentials are fixed, because a cache that
// refreshes them starts goroutines.
func newClient(from *dynamodb.Client, transport dynamodb.HTTPClient, who aws.Credentials) *dynamodb.Client {
	return dynamodb.New(from.Options(), func(o *dynamodb.Options) {
		o.HTTPClient = transport
		o.Credentials = credentials.StaticCredentialsProvider{Value: who}
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) { so.RateLimiter = ratelimit.None })
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("AskForConsumedCapacity", askForCapacity), middleware.Before)
		})
	})
}

// askForCapacity makes every request ask what it bills. That happens before
// the request is signed, not in the transport, so that servers which check
// signatures accept it. The contender's own input stays as it was.
func askForCapacity(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	const total = types.ReturnConsumedCapacityTotal
	switch p := in.Parameters.(type) {
	case *dynamodb.GetItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.QueryInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.ScanInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.BatchGetItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.TransactGetItemsInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.PutItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.UpdateItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.DeleteItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.BatchWriteItemInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	case *dynamodb.TransactWriteItemsInput:
		c := *p
		c.ReturnConsumedCapacity, in.Parameters = total, &c
	}
	return next.HandleInitialize(ctx, in)
}

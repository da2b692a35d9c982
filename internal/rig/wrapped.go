package rig

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Wrapped is a client as programs wrap one: it does something to the options of
// each call.
type Wrapped struct {
	*dynamodb.Client
	With func([]func(*dynamodb.Options)) []func(*dynamodb.Options)
}

// Wrappings are the ways in which wrappers keep a call's options from taking
// effect: what the SDK repeats then is out of its caller's sight.
func Wrappings(client *dynamodb.Client) map[string]*Wrapped {
	after := func(last func(*dynamodb.Options)) *Wrapped {
		return &Wrapped{client, func(o []func(*dynamodb.Options)) []func(*dynamodb.Options) { return append(o[:len(o):len(o)], last) }}
	}
	given := client.Options()
	given.Retryer = retry.AddWithMaxBackoffDelay(given.Retryer, 20*time.Millisecond) // else it sleeps for seconds
	return map[string]*Wrapped{
		"options dropped": {dynamodb.New(given), func([]func(*dynamodb.Options)) []func(*dynamodb.Options) { return nil }},
		"a retryer of its own": after(func(o *dynamodb.Options) {
			o.Retryer = retry.AddWithMaxAttempts(given.Retryer, 3)
		}),
		"a transport of its own": after(func(o *dynamodb.Options) {
			o.HTTPClient, o.Retryer = given.HTTPClient, retry.AddWithMaxAttempts(given.Retryer, 3)
		}),
	}
}

// GetItem sends the request.
func (w *Wrapped) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return w.Client.GetItem(ctx, in, w.With(o)...)
}

// UpdateItem sends the request.
func (w *Wrapped) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return w.Client.UpdateItem(ctx, in, w.With(o)...)
}

// DeleteItem sends the request.
func (w *Wrapped) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return w.Client.DeleteItem(ctx, in, w.With(o)...)
}

// TransactWriteItems sends the request.
func (w *Wrapped) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return w.Client.TransactWriteItems(ctx, in, w.With(o)...)
}

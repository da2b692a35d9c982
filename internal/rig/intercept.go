package rig

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Send sends the write at which a test acts.
type Send = func() (*dynamodb.UpdateItemOutput, error)

// Intercept is a client that lets a test act at its nth write or read, counted
// from 1 each: before it, after it, or in its place. A nil function lets it pass.
type Intercept struct {
	*dynamodb.Client
	Update func(n int, in *dynamodb.UpdateItemInput, send Send) (*dynamodb.UpdateItemOutput, error)
	Delete func(n int, in *dynamodb.DeleteItemInput, send func() (*dynamodb.DeleteItemOutput, error)) (*dynamodb.DeleteItemOutput, error)
	Get    func(n int)
	Read   func(item map[string]types.AttributeValue) // after a read, with what it has found

	updates, deletes, gets atomic.Int64
}

// ErrNoAnswer is what a client says of a request without an answer.
var ErrNoAnswer = errors.New("connection reset")

// UpdateItem sends the request, unless the test does otherwise.
func (c *Intercept) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	send := func() (*dynamodb.UpdateItemOutput, error) { return c.Client.UpdateItem(ctx, in, o...) }
	if c.Update == nil {
		return send()
	}
	return c.Update(int(c.updates.Add(1)), in, send)
}

// DeleteItem sends the request, unless the test does otherwise.
func (c *Intercept) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	send := func() (*dynamodb.DeleteItemOutput, error) { return c.Client.DeleteItem(ctx, in, o...) }
	if c.Delete == nil {
		return send()
	}
	return c.Delete(int(c.deletes.Add(1)), in, send)
}

// GetItem sends the request between the two moments that the test is told of.
func (c *Intercept) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if c.Get != nil {
		c.Get(int(c.gets.Add(1)))
	}
	out, err := c.Client.GetItem(ctx, in, o...)
	if err == nil && c.Read != nil {
		c.Read(out.Item)
	}
	return out, err
}

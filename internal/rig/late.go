package rig

import (
	"context"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Late is a client of which one request arrives late, also when its caller has
// gone meanwhile.
type Late struct {
	*dynamodb.Client
	Sent    chan struct{} // closed when it is on its way
	Arrived chan struct{} // closed when it has arrived
	Answer  bool          // it arrives in time, and the answer is late

	op   string
	nth  int64
	wait func()
	n    atomic.Int64
}

// NewLate delays the nth UpdateItem or TransactWriteItems until wait returns.
func NewLate(client *dynamodb.Client, op string, nth int, wait func()) *Late {
	return &Late{Client: client, Sent: make(chan struct{}), Arrived: make(chan struct{}), op: op, nth: int64(nth), wait: wait}
}

// UpdateItem sends the request.
func (l *Late) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return late(ctx, l, "UpdateItem", func(ctx context.Context) (*dynamodb.UpdateItemOutput, error) {
		return l.Client.UpdateItem(ctx, in, o...)
	})
}

// TransactWriteItems sends the request.
func (l *Late) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return late(ctx, l, "TransactWriteItems", func(ctx context.Context) (*dynamodb.TransactWriteItemsOutput, error) {
		return l.Client.TransactWriteItems(ctx, in, o...)
	})
}

func late[O any](ctx context.Context, l *Late, op string, call func(context.Context) (*O, error)) (*O, error) {
	if l.op != op || l.n.Add(1) != l.nth {
		return call(ctx)
	}
	close(l.Sent)
	var out *O
	var err error
	go func() {
		defer close(l.Arrived)
		if !l.Answer {
			l.wait()
		}
		out, err = call(context.WithoutCancel(ctx))
		if l.Answer {
			l.wait()
		}
	}()
	select {
	case <-l.Arrived:
		return out, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

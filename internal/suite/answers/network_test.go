package answers_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/direct"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// network answers falsely.
type network struct {
	next  fault.Doer
	every bool // request counts as a write
	bare  bool // the endpoint gives neither checksums nor ids, as some engines do

	mu      sync.Mutex
	false   *kind // guarded by mu: nil: all is as it should be
	nth     int   // guarded by mu: the write that is answered falsely, from 1
	applied bool  // guarded by mu: behind the answer it is carried out
	always  bool  // guarded by mu: so is all that comes behind it
	writes  int   // guarded by mu: so far
	first   bool  // guarded by mu: only the next answer is false, of whatever request
	lied    int   // guarded by mu: false answers
}

// lies begins; writes are counted from here on.
func (n *network) lies(k *kind, nth int, applied, always bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.false, n.nth, n.applied, n.always, n.writes, n.lied = k, nth, applied, always, 0, 0
	n.first = false
}

// once makes an end of it after the next answer.
func (n *network) once() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.always, n.first = false, true
}

// heals ends it, and says how many writes there were, and how many lies.
func (n *network) heals() (writes, lied int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.false = nil
	return n.writes, n.lied
}

// lie is the false answer to a request; nil: it gets its own.
func (n *network) lie(write bool) (k *kind, applied bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if write {
		n.writes++
	}
	if n.first && n.lied == 0 {
		n.lied++
		return n.false, n.applied
	}
	hit := write && n.writes == n.nth || n.always && n.writes >= n.nth
	if n.false == nil || n.first || !hit {
		return nil, false
	}
	n.lied++
	return n.false, n.applied
}

// Do implements the SDK's HTTP client.
func (n *network) Do(req *http.Request) (*http.Response, error) {
	op := fault.Operation(req)
	k, applied := n.lie(n.every || op == "UpdateItem" || op == "DeleteItem" || op == "TransactWriteItems")
	var sent []byte
	if k != nil {
		var err error
		if sent, err = fault.Body(req); err != nil || !applied {
			return k.answer(req, sent), err
		}
		req = req.WithContext(context.WithoutCancel(req.Context()))
	}
	resp, err := n.next.Do(req)
	if err != nil {
		return nil, err
	}
	if k != nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return k.answer(req, sent), nil
	}
	resp.Header.Del("Date") // of real time: requests would be sent by the SDK's methods alone
	if n.bare {
		resp.Header.Del("X-Amz-Crc32")
		resp.Header.Del("X-Amzn-Requestid")
	}
	return resp, nil
}

// ways are how a client's requests are sent.
var ways = []string{"directly", "by methods", "without options"}

// client is one over the network, with three attempts.
func (n *network) client(t *testing.T, way string) client {
	t.Helper()
	c := rig.Client(rig.Over(n), func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) { so.MaxAttempts, so.RateLimiter = 3, ratelimit.None })
	})
	switch way {
	case "directly":
		return rig.Must(direct.Client(c))(t)
	case "without options":
		return dropping{c}
	}
	return c
}

// client is what all packages need.
type client interface {
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
	TransactGetItems(context.Context, *dynamodb.TransactGetItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// dropping is a client as a program wraps one that forgets the options of a call.
type dropping struct{ client }

func (d dropping) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	return d.client.BatchGetItem(ctx, in)
}

func (d dropping) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return d.client.DeleteItem(ctx, in)
}

func (d dropping) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, _ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	return d.client.DescribeTable(ctx, in)
}

func (d dropping) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return d.client.GetItem(ctx, in)
}

func (d dropping) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return d.client.Query(ctx, in)
}

func (d dropping) Scan(ctx context.Context, in *dynamodb.ScanInput, _ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return d.client.Scan(ctx, in)
}

func (d dropping) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	return d.client.TransactGetItems(ctx, in)
}

func (d dropping) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return d.client.TransactWriteItems(ctx, in)
}

func (d dropping) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return d.client.UpdateItem(ctx, in)
}

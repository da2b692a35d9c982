package rig

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
)

// Conflicts makes of the engine, which does one thing after the other, a service
// like Amazon's: a request takes a while, and a transaction is refused that comes to
// an item while another write is at it, as is a plain write that comes while a
// transaction is.
type Conflicts struct {
	Latency time.Duration        // of a request; while it passes a write is at its items
	Delay   func() time.Duration // if set, is asked for the latency of each request instead
	Next    fault.Doer           // nil: the engine

	// Saw is told of each request, with its operation and its body; nil: nobody is.
	Saw     func(op string, body []byte)
	Refused atomic.Int64 // requests

	mu    sync.Mutex
	plain map[string]int // guarded by mu: plain writes under way, by item
	trans map[string]int // guarded by mu: transactions under way
}

// Client is a client whose requests conflict with those of the others.
func (c *Conflicts) Client() *dynamodb.Client {
	return Client(func(o *dynamodb.Options) {
		next := c.Next
		if next == nil {
			next = o.HTTPClient
		}
		o.HTTPClient = conflictDoer{c, next}
	})
}

type conflictDoer struct {
	*Conflicts
	next fault.Doer
}

// Do implements the SDK's HTTP client.
func (c conflictDoer) Do(req *http.Request) (*http.Response, error) {
	body, err := fault.Body(req)
	if err != nil {
		return nil, err
	}
	op := fault.Operation(req)
	if c.Saw != nil {
		c.Saw(op, body)
	}
	keys, transaction := writtenBy(op, body), op == "TransactWriteItems"
	at := c.enter(keys, transaction)
	if c.Delay != nil {
		time.Sleep(c.Delay())
	} else {
		time.Sleep(c.Latency)
	}
	if at >= 0 {
		c.Refused.Add(1)
		return fault.Conflict(req, op, body, at), nil
	}
	defer c.leave(keys, transaction)
	return c.next.Do(req)
}

// enter notes a write at its items; it returns which of them another one is at,
// or -1.
func (c *Conflicts) enter(keys []string, transaction bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plain == nil {
		c.plain, c.trans = map[string]int{}, map[string]int{}
	}
	for i, key := range keys {
		if c.trans[key] > 0 || transaction && c.plain[key] > 0 {
			return i
		}
	}
	for _, key := range keys {
		c.under(transaction)[key]++
	}
	return -1
}

func (c *Conflicts) leave(keys []string, transaction bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if under := c.under(transaction); under[key] > 1 {
			under[key]--
		} else {
			delete(under, key)
		}
	}
}

func (c *Conflicts) under(transaction bool) map[string]int {
	if transaction {
		return c.trans
	}
	return c.plain
}

// writtenBy are the items that a request writes.
func writtenBy(op string, body []byte) (keys []string) {
	type write struct{ Key, Item map[string]map[string]any }
	var in struct {
		write
		TransactItems []struct{ Put, Update, Delete *write }
	}
	_ = json.Unmarshal(body, &in)
	add := func(w *write) {
		key := w.Key
		if key == nil {
			key = w.Item
		}
		keys = append(keys, fmt.Sprint(key["pk"], key["sk"]))
	}
	for _, t := range in.TransactItems {
		for _, w := range []*write{t.Put, t.Update, t.Delete} {
			if w != nil {
				add(w)
			}
		}
	}
	if op == "UpdateItem" || op == "PutItem" || op == "DeleteItem" {
		add(&in.write)
	}
	return keys
}

package fault

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Counter counts requests by operation. It is safe for concurrent use.
type Counter struct {
	next Doer

	mu     sync.Mutex
	counts map[string]int               // guarded by mu
	watch  func(op string, body []byte) // guarded by mu
}

// NewCounter counts what passes to next.
func NewCounter(next Doer) *Counter { return &Counter{next: next, counts: map[string]int{}} }

// OnRequest calls watch with every request from now on, after it was counted
// and before it is passed on; nil ends it. Requests that come side by side call
// it side by side, and each waits until its call returns: watch may block, and
// may call the counter. It must not keep or change body.
func (c *Counter) OnRequest(watch func(op string, body []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = watch
}

// Do implements the SDK's HTTP client.
func (c *Counter) Do(req *http.Request) (*http.Response, error) {
	op := Operation(req)
	c.mu.Lock()
	c.counts[op]++
	watch := c.watch
	c.mu.Unlock()
	if watch == nil {
		return c.next.Do(req)
	}
	body, err := Body(req)
	if err != nil {
		return nil, err
	}
	watch(op, body)
	return c.next.Do(req)
}

// Operation is the DynamoDB operation of a request, such as "UpdateItem".
func Operation(req *http.Request) string {
	target := req.Header.Get("X-Amz-Target")
	return target[strings.LastIndexByte(target, '.')+1:]
}

// Count returns the number of requests of one operation.
func (c *Counter) Count(op string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[op]
}

// Counts returns the number of requests by operation.
func (c *Counter) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Total is the number of all requests.
func (c *Counter) Total() (n int) {
	for _, v := range c.Counts() {
		n += v
	}
	return n
}

// Reset starts again from zero.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
}

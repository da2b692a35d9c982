package fault

import (
	"maps"
	"net/http"
	"strings"
	"sync"
)

// Counter counts requests by operation. It is safe for concurrent use.
type Counter struct {
	next   Doer
	mu     sync.Mutex
	counts map[string]int
}

// NewCounter counts what passes to next.
func NewCounter(next Doer) *Counter { return &Counter{next: next, counts: map[string]int{}} }

// Do implements the SDK's HTTP client.
func (c *Counter) Do(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.counts[Operation(req)]++
	c.mu.Unlock()
	return c.next.Do(req)
}

// Operation is the DynamoDB operation of a request, such as "UpdateItem".
func Operation(req *http.Request) string {
	target := req.Header.Get("X-Amz-Target")
	return target[strings.LastIndexByte(target, '.')+1:]
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

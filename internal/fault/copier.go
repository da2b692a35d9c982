package fault

import (
	"bytes"
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Copier makes copies of requests, as a network does, at moments that a test names.
// It is safe for concurrent use.
type Copier struct {
	next Doer

	mu   sync.Mutex
	with func(*Copy) (*http.Response, error) // guarded by mu
}

// NewCopier passes requests to next.
func NewCopier(next Doer) *Copier { return &Copier{next: next} }

// Copy is a request that can be delivered any number of times, also when its caller
// has gone. Its bytes, headers and signature are those of the original.
type Copy struct {
	Op   string
	Body []byte

	req  *http.Request
	next Doer
}

// Deliver delivers the request once more, and returns when the engine has acted.
func (c *Copy) Deliver() (*http.Response, error) {
	resp, _, err := whole(c.next.Do(copyOf(context.WithoutCancel(c.req.Context()), c.req, c.Body)))
	return resp, err
}

// DeliverAnd is Deliver, and changes what the answer says.
func (c *Copy) DeliverAnd(edit func(said map[string]any)) (*http.Response, error) {
	resp, body, err := whole(c.next.Do(copyOf(context.WithoutCancel(c.req.Context()), c.req, c.Body)))
	if err != nil {
		return nil, err
	}
	var said map[string]any
	if err := json.Unmarshal(body, &said); err != nil {
		return nil, err
	}
	edit(said)
	if body, err = json.Marshal(said); err != nil {
		return nil, err
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	resp.Header.Set(checksumHeader, strconv.FormatUint(uint64(crc32.ChecksumIEEE(body)), 10))
	return resp, nil
}

// checksumHeader has the CRC-32 of an answer's body.
const checksumHeader = "X-Amz-Crc32"

// On lets a test decide from now on what becomes of each request: what it returns is
// what the caller sees. If it returns neither an answer nor an error the request is
// delivered as if nothing had been. nil ends it. It is called side by side where requests
// come side by side.
func (c *Copier) On(with func(*Copy) (*http.Response, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.with = with
}

// Twice delivers the nth request, from 0, that match accepts a second time; between is
// called before that. The caller sees the second answer.
func (c *Copier) Twice(match func(*Copy) bool, n int, between func()) {
	c.nth(match, n, func(one *Copy) (*http.Response, error) {
		if _, err := one.Deliver(); err != nil {
			return nil, err
		}
		between()
		return one.Deliver()
	})
}

// Keep keeps copies of the requests that match accepts, which pass. What it returns
// hands out those that were sent so far.
func (c *Copier) Keep(match func(*Copy) bool) (sent func() []*Copy) {
	var mu sync.Mutex
	var kept []*Copy
	c.On(func(one *Copy) (*http.Response, error) {
		if match(one) {
			mu.Lock()
			defer mu.Unlock()
			kept = append(kept, one)
		}
		return nil, nil
	})
	return func() []*Copy {
		mu.Lock()
		defer mu.Unlock()
		return append([]*Copy(nil), kept...)
	}
}

// nth lets a test act in the place of one request.
func (c *Copier) nth(match func(*Copy) bool, n int, act func(*Copy) (*http.Response, error)) {
	var mu sync.Mutex
	seen := 0
	c.On(func(one *Copy) (*http.Response, error) {
		if !match(one) {
			return nil, nil
		}
		mu.Lock()
		seen++
		hit := seen == n+1
		mu.Unlock()
		if !hit {
			return nil, nil
		}
		return act(one)
	})
}

// Writes accepts what may write.
func Writes(c *Copy) bool {
	switch c.Op {
	case "UpdateItem", "DeleteItem", "PutItem", "TransactWriteItems":
		return true
	}
	return false
}

// Do implements the SDK's HTTP client.
func (c *Copier) Do(req *http.Request) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	with := c.with
	c.mu.Unlock()
	one := &Copy{Op: Operation(req), Body: body, req: req, next: c.next}
	if with != nil {
		if resp, err := with(one); resp != nil || err != nil {
			return resp, err
		}
	}
	return c.next.Do(copyOf(req.Context(), req, body))
}

// Met is the answer that others are at an item, or that there are too many requests: for
// a transaction the code of a reason, which its nth part has, for a single write that of
// an error.
func (c *Copy) Met(code string, nth int) *http.Response {
	var sent struct{ TransactItems []json.RawMessage }
	if json.Unmarshal(c.Body, &sent) != nil || nth >= len(sent.TransactItems) || strings.HasSuffix(code, "Exception") {
		return answer(c.req, http.StatusBadRequest, strings.TrimSuffix(strings.TrimSuffix(code, "Exception"), "Error")+"Exception")
	}
	reasons := slices.Repeat([]string{`{"Code":"None"}`}, len(sent.TransactItems))
	reasons[nth] = `{"Code":"` + code + `","Message":"injected"}`
	return failure(c.req, http.StatusBadRequest, "TransactionCanceledException", `,"CancellationReasons":[`+strings.Join(reasons, ",")+`]`)
}

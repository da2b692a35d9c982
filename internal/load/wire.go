package load

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// wire is the HTTP client of one process: it delays and counts requests.
type wire struct {
	*crew
	next   aws.HTTPClient
	delays *delays
}

// Do implements dynamodb.HTTPClient. A caller whose context ends is let go at
// once, but the request cannot be called back: the engine gets it.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// No context goes along: its channels belong to the bubble, and a
	// connection waits for them outside.
	sent := req.Clone(context.Background())
	sent.Body = io.NopCloser(bytes.NewReader(body))

	operation := operationOf(req)
	hot := bytes.Contains(body, hottest)
	measured := w.window.sent()
	w.life.Add(1)
	if measured {
		w.tally.request(operation)
	}
	delay := w.delays.next()
	second := w.secondRound(operation)
	began := time.Now()
	if !sleep(ctx, delay/2) {
		left := delay/2 - time.Since(began)
		w.adrift.Go(func() {
			time.Sleep(left)
			_, _ = w.deliver(sent, body, second, hot, measured) //nolint:bodyclose // it is in memory
		})
		return nil, unclear(ctx, operation, ctx.Err())
	}
	resp, err := w.deliver(sent, body, second, hot, measured)
	if !sleep(ctx, delay-delay/2) {
		err = ctx.Err()
	}
	if err != nil {
		return nil, unclear(ctx, operation, err)
	}
	if resp.StatusCode >= http.StatusInternalServerError {
		_ = unclear(ctx, operation, nil)
	}
	return resp, nil
}

// hottest is how a request names the first item, which a skewed choice makes the
// hottest one.
var hottest = []byte(`"` + itemID(0) + `"`)

// deliver lets the service answer and notes what it bills.
func (w *wire) deliver(req *http.Request, asked []byte, second time.Duration, hot, measured bool) (*http.Response, error) {
	operation := operationOf(req)
	visit, resp := w.service.enter(operation, asked, second)
	if resp == nil {
		var err error
		if resp, err = w.next.Do(req); err != nil { // what follows closes it
			visit.leave(0)
			return nil, err
		}
	}
	var body bytes.Buffer
	_, err := body.ReadFrom(resp.Body)
	_ = resp.Body.Close()
	units, wasted := w.tally.weigh(operation, resp.StatusCode, body.Bytes())
	visit.leave(units)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body.Bytes()))
	if measured {
		w.tally.answer(operation, hot, units, wasted)
	}
	return resp, nil
}

// secondRound is how much longer a transaction takes than a single request. In real
// time the server takes the time that it takes.
func (w *wire) secondRound(operation string) time.Duration {
	if w.service == nil || !strings.HasPrefix(operation, "Transact") {
		return 0
	}
	return w.delays.next()
}

// call is one change under way, as its requests see it.
type call struct{ unclear atomic.Bool } // a write of it had no clear answer

type callKey struct{}

// unclear notes a write without a clear answer on the call that sent it.
func unclear(ctx context.Context, operation string, err error) error {
	if c, ok := ctx.Value(callKey{}).(*call); ok && !isRead(operation) {
		c.unclear.Store(true)
	}
	return err
}

func operationOf(req *http.Request) string {
	_, operation, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
	return operation
}

func isRead(operation string) bool {
	switch operation {
	case "GetItem", "Query", "Scan", "BatchGetItem", "TransactGetItems":
		return true
	}
	return false
}

// Package bridge carries HTTP requests out of a bubble of virtual time (testing/synctest)
// to a real service.
package bridge

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Bridge sends requests from a bubble by goroutines outside of it. Those of a connection
// wait for the network, which inside the bubble would count as work for as long as the
// connection lives, so that its clock never moved. Whoever waits for an answer here counts
// as working too, which is what makes virtual time stand still until it has come.
type Bridge struct{ free chan line }

type line struct {
	ask    chan *http.Request
	answer chan answer
}

type answer struct {
	resp *http.Response
	err  error
}

// New must be called outside the bubble. At most lines requests are under way at once.
func New(next aws.HTTPClient, lines int) *Bridge {
	b := &Bridge{free: make(chan line, lines)}
	for range lines {
		l := line{make(chan *http.Request), make(chan answer)}
		go func() {
			for req := range l.ask {
				l.answer <- ask(next, req)
			}
		}()
		b.free <- l
	}
	return b
}

// silence is how long a service may leave a request without an answer, in real time. In
// the bubble no deadline would end such a request: its clock stands still meanwhile.
const silence = time.Minute

// ask sends a request outside of the bubble. One that gets no answer is one whose
// connection broke.
func ask(next aws.HTTPClient, req *http.Request) answer {
	ctx, cancel := context.WithTimeout(context.Background(), silence)
	defer cancel()
	resp, err := next.Do(req.WithContext(ctx))
	if err == nil {
		err = buffer(resp) // out here: reading the body reads from the connection
	}
	if ctx.Err() != nil {
		fmt.Fprintf(os.Stderr, "bridge: no answer within %v to %s\n", silence, req.Header.Get("X-Amz-Target"))
	}
	return answer{resp, err}
}

// Do implements the SDK's HTTP client. The service answers in real time, so the request
// runs on a context of its own: a virtual deadline cannot end it.
func (b *Bridge) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	outside := req.Clone(context.Background())
	outside.Body = io.NopCloser(bytes.NewReader(body))
	l := <-b.free
	l.ask <- outside
	a := <-l.answer
	b.free <- l
	return a.resp, a.err
}

// Close ends the goroutines; no request may be under way.
func (b *Bridge) Close() {
	for range cap(b.free) {
		close((<-b.free).ask)
	}
}

// buffer reads an answer to its end and puts it back.
func buffer(resp *http.Response) error {
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return err
}

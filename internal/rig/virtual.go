package rig

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
)

// InVirtualTime runs a test in virtual time, on the real engine, which at most lines
// requests reach at once.
func InVirtualTime(t *testing.T, lines int, run func(t *testing.T, network fault.Doer)) {
	var doer fault.Doer
	Client(func(o *dynamodb.Options) { doer = o.HTTPClient })
	overBridge(t, doer, lines, run)
}

// InVirtualTime is InVirtualTime with requests that pass through the rig's net.
func (r *Rig) InVirtualTime(t *testing.T, lines int, run func(t *testing.T, network fault.Doer)) {
	overBridge(t, r.Net, lines, run)
}

func overBridge(t *testing.T, doer fault.Doer, lines int, run func(t *testing.T, network fault.Doer)) {
	b := newBridge(doer, lines)
	defer b.close()
	synctest.Test(t, func(t *testing.T) { run(t, b) })
}

// bridge sends requests from a bubble of virtual time to the real engine. The
// connection's goroutines live outside the bubble, where they would freeze its
// clock, and while a caller waits for an answer virtual time stands still.
type bridge struct{ lines chan line }

type line struct {
	ask    chan *http.Request
	answer chan answered
}

type answered struct {
	resp *http.Response
	err  error
}

// newBridge must be called outside the bubble.
func newBridge(next fault.Doer, lines int) *bridge {
	b := &bridge{lines: make(chan line, lines)}
	for range lines {
		l := line{make(chan *http.Request), make(chan answered)}
		go func() {
			for req := range l.ask {
				resp, err := next.Do(req)
				if err == nil { // read here: a body reads from the connection
					var body []byte
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					resp.Body = io.NopCloser(bytes.NewReader(body))
				}
				l.answer <- answered{resp, err}
			}
		}()
		b.lines <- l
	}
	return b
}

// Do implements the SDK's HTTP client. The engine answers in real time, so the
// request runs on a context of its own: a virtual deadline cannot end it.
func (b *bridge) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	outside := req.Clone(context.Background())
	outside.Body = io.NopCloser(bytes.NewReader(body))
	l := <-b.lines
	l.ask <- outside
	a := <-l.answer
	b.lines <- l
	return a.resp, a.err
}

func (b *bridge) close() {
	for range cap(b.lines) {
		l := <-b.lines
		close(l.ask)
	}
}

// Mortal is the network of a process in virtual time that can be killed: from
// then on nothing of what it sends arrives, and no answer reaches it.
type Mortal struct {
	Next    fault.Doer
	Latency time.Duration // of each way
	Dead    atomic.Bool
	// Lost, if set, tells which requests are answered by silence: before or after
	// they have arrived.
	Lost func(op, body string) (before, after bool)
}

var errDead = errors.New("this process is dead")

// Do implements the SDK's HTTP client.
func (m *Mortal) Do(req *http.Request) (*http.Response, error) {
	var before, after bool
	if m.Lost != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		before, after = m.Lost(op, string(body))
	}
	time.Sleep(m.Latency)
	if m.Dead.Load() {
		return nil, errDead
	}
	if before {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	resp, err := m.Next.Do(req)
	if after {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	time.Sleep(m.Latency)
	if m.Dead.Load() {
		return nil, errDead
	}
	return resp, err
}

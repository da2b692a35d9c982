package ticket_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

// How long a call takes is measured in virtual time, in which a busy machine
// takes no time at all. The requests go to the real engine all the same.

// fate is what befalls a request.
type fate int

const (
	delivered fate = iota
	dead           // it never arrives, and nobody says so
	lost           // it arrives, and its answer never does
	slow           // it takes a tenth of a second
)

// wire is an HTTP client inside a bubble of virtual time. The engine's
// connections live outside, where they would keep the bubble's clock from
// moving; while it answers, virtual time stands still.
type wire struct {
	lines chan wireLine

	mu   sync.Mutex
	rule func(op, body string) fate // guarded by mu; nil: all is delivered
}

type wireLine struct {
	ask    chan *http.Request
	answer chan wireAnswer
}

type wireAnswer struct {
	resp *http.Response
	err  error
}

// newWire must be called outside the bubble.
func newWire(next fault.Doer) *wire {
	w := &wire{lines: make(chan wireLine, 64)}
	for range cap(w.lines) {
		l := wireLine{make(chan *http.Request), make(chan wireAnswer)}
		go func() {
			for req := range l.ask {
				resp, err := next.Do(req)
				if err == nil { // read here: a body reads from the connection
					var body []byte
					body, err = io.ReadAll(resp.Body)
					_ = resp.Body.Close()
					resp.Body = io.NopCloser(bytes.NewReader(body))
				}
				l.answer <- wireAnswer{resp, err}
			}
		}()
		w.lines <- l
	}
	return w
}

func (w *wire) close() {
	for range cap(w.lines) {
		close((<-w.lines).ask)
	}
}

// obey lets a rule decide what befalls each request from now on.
func (w *wire) obey(rule func(op, body string) fate) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rule = rule
}

// all lets the same befall every request from now on.
func (w *wire) all(f fate) { w.obey(func(string, string) fate { return f }) }

// Do implements the SDK's HTTP client.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	rule, f := w.rule, delivered
	w.mu.Unlock()
	if rule != nil {
		_, op, _ := strings.Cut(req.Header.Get("X-Amz-Target"), ".")
		f = rule(op, string(body))
	}
	switch f {
	case dead:
		<-req.Context().Done()
	case slow:
		select {
		case <-time.After(100 * time.Millisecond):
		case <-req.Context().Done():
		}
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	outside := req.Clone(context.Background()) // a virtual deadline must not end it
	outside.Body = io.NopCloser(bytes.NewReader(body))
	l := <-w.lines
	l.ask <- outside
	a := <-l.answer
	w.lines <- l
	if f == lost {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return a.resp, a.err
}

// bubble is a table in a bubble of virtual time.
type bubble struct {
	bench
	wire   *wire
	client *dynamodb.Client // whose requests the wire carries
	sound  *dynamodb.Client // of another process, which nothing befalls
}

// inBubble runs a test in a bubble.
func inBubble(t *testing.T, test func(t *testing.T, b *bubble)) {
	t.Helper()
	b := &bubble{bench: newBench(t)}
	var doer fault.Doer
	rig.Client(func(o *dynamodb.Options) { doer = o.HTTPClient })
	b.wire = newWire(doer)
	defer b.wire.close()
	quiet := newWire(doer)
	defer quiet.close()
	b.client = rig.Client(func(o *dynamodb.Options) { o.HTTPClient = b.wire })
	b.sound = rig.Client(func(o *dynamodb.Options) { o.HTTPClient = quiet })
	synctest.Test(t, func(t *testing.T) { test(t, b) })
}

// open makes a queue that is closed, on a sound network, at the end of the test.
func (b *bubble) open(t *testing.T, client *dynamodb.Client, cfg ticket.Config) *ticket.Queue {
	t.Helper()
	q := rig.Must(ticket.New(client, b.Table, cfg))(t)
	t.Cleanup(func() {
		b.wire.obey(nil)
		_ = q.Close(context.Background())
		synctest.Wait()
	})
	return q
}

// list is the queue as another process sees it.
func (b *bubble) list(t *testing.T) []ticket.Entry {
	t.Helper()
	return rig.Must(rig.Must(ticket.New(b.sound, b.Table, ticket.Config{}))(t).List(context.Background(), "door"))(t)
}

// leaveDead leaves an entry whose owner renews it no more, past its end.
func (b *bubble) leaveDead(t *testing.T) {
	t.Helper()
	turn := lock(t, b.open(t, b.client, ticket.Config{Lease: time.Second}), "door")
	b.wire.all(dead)
	<-turn.Context().Done()
	time.Sleep(3 * time.Second) // past the allowance for clocks
	b.wire.obey(nil)
}

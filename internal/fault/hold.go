package fault

import (
	"context"
	"sync"
)

// Held is a message that stands still until the test lets it go on: a request
// before it is sent, or an answer before the caller sees it.
type Held struct {
	Op   string
	N    int    // number of the request, from 0
	Body []byte // of the request

	once sync.Once
	gone chan struct{}
}

func newHeld(op string, n int, body []byte) *Held {
	return &Held{Op: op, N: n, Body: body, gone: make(chan struct{})}
}

// Release lets the message go on. More calls do nothing, so it can be deferred.
func (h *Held) Release() { h.once.Do(func() { close(h.gone) }) }

// Held hands out each message that HoldRequest or HoldResponse stopped, also where its
// caller has left meanwhile: a test that waits for it waits no longer than the service
// takes to answer. The end of the caller's context ends the hold: the caller then sees
// the context's error, a held request is never sent, and a held answer is lost. That is
// how a test cancels a context in the middle of a chosen request.
func (i *Injector) Held() <-chan *Held { return i.held }

// hold waits until the test releases the message, or the caller gives up.
func (i *Injector) hold(ctx context.Context, h *Held) error {
	select {
	case i.held <- h:
	default: // more are held than anybody asks for
	}
	select {
	case <-h.gone:
	case <-ctx.Done():
	}
	return ctx.Err()
}

package load

import (
	"bytes"
	"io"
	"net/http"
)

// A doer sends an HTTP request; the SDK's HTTP client is one.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// lines bounds the requests that are in the engine at one moment of virtual
// time, which are few: every request arrives at its own moment.
const lines = 16

// bridge carries requests out of a bubble of virtual time. The goroutines of a
// connection wait for the network, which inside the bubble would count as work
// for as long as the connection lives, so that its clock never moved. Whoever
// waits for an answer here counts as working too, which is what makes virtual
// time stand still until the engine has answered.
type bridge struct{ free chan line }

type line struct {
	ask    chan *http.Request
	answer chan answer
}

type answer struct {
	resp *http.Response
	err  error
}

// newBridge must be called outside the bubble.
func newBridge(next doer) *bridge {
	b := &bridge{free: make(chan line, lines)}
	for range lines {
		l := line{make(chan *http.Request), make(chan answer)}
		go func() {
			for req := range l.ask {
				resp, err := next.Do(req)
				if err == nil {
					err = buffer(resp) // out here: reading the body reads from the connection
				}
				l.answer <- answer{resp, err}
			}
		}()
		b.free <- l
	}
	return b
}

func (b *bridge) Do(req *http.Request) (*http.Response, error) {
	l := <-b.free
	l.ask <- req
	a := <-l.answer
	b.free <- l
	return a.resp, a.err
}

// close ends the goroutines; no request may be under way.
func (b *bridge) close() {
	for range lines {
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

package fault_test

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/dynahold/dynahold/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const reply = `{"Attributes":{"n":{"N":"1"}}}`

// server notes what is delivered to it, and answers as DynamoDB does.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string // guarded by mu
	wrong  []string // guarded by mu: what a copy did not keep
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		if err != nil || r.ContentLength != int64(len(body)) || r.Header.Get("Authorization") != "signature" {
			s.wrong = append(s.wrong, fmt.Sprintf("%q, length %d, %v: %v", body, r.ContentLength, r.Header, err))
		}
		n := len(s.bodies)
		s.mu.Unlock()
		w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(reply))))
		w.Header().Set("X-Delivery", fmt.Sprint(n))
		_, _ = io.WriteString(w, reply)
	}))
	t.Cleanup(func() {
		s.Close()
		for _, w := range s.wrong {
			t.Errorf("delivered %s", w)
		}
	})
	return s
}

func (s *server) delivered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func (s *server) request(ctx context.Context, t *testing.T, op, body string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = nil // the SDK sets none
	req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+op)
	req.Header.Set("Authorization", "signature")
	return req
}

// outcome is what a caller sees.
type outcome struct {
	resp    *http.Response // its body is read and closed
	body    string
	bodyErr error
	err     error
}

func do(d fault.Doer, req *http.Request) outcome {
	resp, err := d.Do(req)
	if err != nil {
		return outcome{err: err}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return outcome{resp: resp, body: string(body), bodyErr: err}
}

func (s *server) call(t *testing.T, d fault.Doer, op, body string) outcome {
	t.Helper()
	return do(d, s.request(t.Context(), t, op, body))
}

// always is an injector that does the same to each request.
func (s *server) always(k fault.Kind) *fault.Injector {
	return fault.New(s.Client(), fault.Config{Script: func(string, int, []byte) fault.Kind { return k }})
}

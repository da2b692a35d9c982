package fault

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Kind is what happens to a request.
type Kind int

const (
	None                Kind = iota
	DropRequest              // never delivered; the caller sees a reset connection
	LoseResponse             // delivered; the caller sees a reset connection
	Resend                   // delivered twice; the caller sees the second answer
	LateDuplicate            // delivered and answered; a copy is delivered later
	Delay                    // delivered later
	DelayResponse            // answered later
	Truncate                 // delivered; half of the answer arrives
	Error500                 // not delivered; answered by 500
	Error500After            // delivered; answered by 500
	Throttle                 // not delivered; answered by a throttling error
	TransactionConflict      // not delivered; answered by a conflict with a transaction
	Refuse                   // the connection is refused
	kinds
)

var kindNames = [kinds]string{"none", "request dropped", "response lost", "resent", "late duplicate", "delayed", "response delayed",
	"truncated", "500 before", "500 after", "throttled", "transaction conflict", "connection refused"}

func (k Kind) String() string { return kindNames[k] }

// AllKinds are all faults.
func AllKinds() (all []Kind) {
	for k := DropRequest; k < kinds; k++ {
		all = append(all, k)
	}
	return all
}

// Config says what an injector does.
type Config struct {
	Seed     uint64
	Rate     float64       // share of the requests that are hit
	Kinds    []Kind        // default: all
	MaxDelay time.Duration // default 10 ms
	// Script, if set, decides instead of the schedule. n counts requests from 0.
	Script func(op string, n int, body []byte) Kind
}

// Injector breaks requests. Its schedule is a function of the seed and the
// order of the requests.
type Injector struct {
	next Doer
	cfg  Config
	late sync.WaitGroup

	mu     sync.Mutex
	rng    *rand.Rand // guarded by mu
	n      int
	counts map[Kind]int
}

// New puts an injector before next.
func New(next Doer, cfg Config) *Injector {
	if cfg.Kinds == nil {
		cfg.Kinds = AllKinds()
	}
	if cfg.MaxDelay == 0 {
		cfg.MaxDelay = 10 * time.Millisecond
	}
	return &Injector{next: next, cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 1)), counts: map[Kind]int{}} //nolint:gosec // repeatable on purpose
}

// Wait waits until every late duplicate has been delivered.
func (i *Injector) Wait() { i.late.Wait() }

// Counts returns how many requests were hit, by kind; None counts the others.
func (i *Injector) Counts() map[Kind]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.counts)
}

func (i *Injector) choose(op string, body []byte) (Kind, time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.n
	i.n++
	kind := None
	hit, which, delay := i.rng.Float64() < i.cfg.Rate, i.rng.IntN(len(i.cfg.Kinds)), time.Duration(i.rng.Int64N(int64(i.cfg.MaxDelay)))
	switch {
	case i.cfg.Script != nil:
		kind = i.cfg.Script(op, n, body)
	case hit:
		kind = i.cfg.Kinds[which]
	}
	i.counts[kind]++
	return kind, delay
}

// Do implements the SDK's HTTP client.
func (i *Injector) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	kind, delay := i.choose(Operation(req), body)
	deliver := func(ctx context.Context) (*http.Response, error) {
		again := req.Clone(ctx)
		again.Body = io.NopCloser(bytes.NewReader(body))
		return i.next.Do(again)
	}
	// What must reach the engine does, whatever becomes of the caller.
	surely := context.WithoutCancel(req.Context())
	switch kind {
	case DropRequest:
		return nil, reset()
	case Refuse:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case LoseResponse:
		return nil, errors.Join(i.swallow(deliver(surely)), reset())
	case Resend:
		if err := i.swallow(deliver(surely)); err != nil {
			return nil, err
		}
	case LateDuplicate:
		resp, err := deliver(req.Context())
		i.late.Go(func() {
			time.Sleep(delay)
			_ = i.swallow(deliver(surely))
		})
		return resp, err
	case Delay:
		pause(req.Context(), delay)
	case DelayResponse:
		resp, err := deliver(surely)
		pause(req.Context(), delay)
		if req.Context().Err() != nil && err == nil {
			_ = resp.Body.Close()
			return nil, req.Context().Err()
		}
		return resp, err
	case Truncate:
		return truncate(deliver(surely))
	case Error500:
		return answer(req, 500, "InternalServerError"), nil
	case Error500After:
		if err := i.swallow(deliver(surely)); err != nil {
			return nil, err
		}
		return answer(req, 500, "InternalServerError"), nil
	case Throttle:
		return answer(req, 400, "ProvisionedThroughputExceededException"), nil
	case TransactionConflict:
		return answer(req, 400, "TransactionConflictException"), nil
	}
	return deliver(req.Context())
}

func reset() error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} }

// swallow reads an answer to its end, so that the engine has surely acted.
func (i *Injector) swallow(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func truncate(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return nil, err
	}
	half := slices.Clone(body[:len(body)/2])
	resp.Body = io.NopCloser(bytes.NewReader(half))
	resp.ContentLength = int64(len(half))
	resp.Header.Set("Content-Length", strconv.Itoa(len(half)))
	return resp, nil
}

func answer(req *http.Request, status int, code string) *http.Response {
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"injected"}`
	return &http.Response{StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
		Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, ContentLength: int64(len(body)),
		Body: io.NopCloser(bytes.NewReader([]byte(body)))}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

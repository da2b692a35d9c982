package fault

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// Config says what an injector does.
type Config struct {
	Seed     uint64
	Rate     float64       // share of the requests that are hit
	Kinds    []Kind        // default: all
	MaxDelay time.Duration // default 10 ms
	// Script, if set, decides instead of the schedule. n counts requests from
	// 0. Calls follow each other; they must not call the injector, nor sleep: in virtual
	// time nothing goes on while another request waits for them.
	Script func(op string, n int, body []byte) Kind
}

// Injector breaks requests. Its schedule is a function of the seed and the
// order of the requests. It is safe for concurrent use.
type Injector struct {
	next Doer
	cfg  Config
	held chan *Held

	mu     sync.Mutex
	rng    *rand.Rand   // guarded by mu
	n      int          // guarded by mu
	counts map[Kind]int // guarded by mu
	late   int          // guarded by mu: copies that are still to be delivered
	none   sync.Cond    // of mu: late is 0
}

// New puts an injector before next.
func New(next Doer, cfg Config) *Injector {
	if len(cfg.Kinds) == 0 {
		cfg.Kinds = AllKinds()
	}
	if cfg.MaxDelay <= 0 {
		cfg.MaxDelay = 10 * time.Millisecond
	}
	i := &Injector{
		next:   next,
		cfg:    cfg,
		held:   make(chan *Held, 1<<10),
		rng:    rand.New(rand.NewPCG(cfg.Seed, 1)), // repeatable on purpose
		counts: map[Kind]int{},
	}
	i.none.L = &i.mu
	return i
}

// Wait waits until every late duplicate has been delivered. A request that comes
// meanwhile may leave another.
func (i *Injector) Wait() {
	i.mu.Lock()
	defer i.mu.Unlock()
	for i.late > 0 { // not a WaitGroup, which must not grow from zero beside one who waits
		i.none.Wait()
	}
}

// duplicate delivers a copy after a while, in its own time.
func (i *Injector) duplicate(req *http.Request, body []byte, delay time.Duration) {
	i.mu.Lock()
	i.late++
	i.mu.Unlock()
	go func() {
		time.Sleep(delay)
		if resp, _, err := i.surely(req, body); err == nil {
			_ = resp.Body.Close() // nobody is left to hear the answer
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.late--; i.late == 0 {
			i.none.Broadcast()
		}
	}()
}

// Counts returns how many requests were hit, by kind; None counts the others.
func (i *Injector) Counts() map[Kind]int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.counts)
}

// Requests is the number of requests so far. Copies that the injector makes
// are not counted.
func (i *Injector) Requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n
}

// Faulted is the number of requests that were hit.
func (i *Injector) Faulted() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.n - i.counts[None]
}

// A fate is what was drawn for one request.
type fate struct {
	kind  Kind
	n     int
	delay time.Duration
}

func (i *Injector) draw(op string, body []byte) fate {
	i.mu.Lock()
	defer i.mu.Unlock()
	f := fate{n: i.n}
	i.n++
	// Always three draws: what a request draws does not depend on what
	// befell those before it.
	hit, which := i.rng.Float64() < i.cfg.Rate, i.rng.IntN(len(i.cfg.Kinds))
	f.delay = time.Duration(i.rng.Int64N(int64(i.cfg.MaxDelay)))
	if hit {
		f.kind = i.cfg.Kinds[which]
	}
	if i.cfg.Script != nil {
		f.kind = i.cfg.Script(op, f.n, body)
	}
	i.counts[f.kind]++
	return f
}

// Do implements the SDK's HTTP client.
func (i *Injector) Do(req *http.Request) (*http.Response, error) {
	op := Operation(req)
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	return i.send(req, op, body, i.draw(op, body))
}

// With is Do, but the caller decides, and neither the schedule nor the script.
func (i *Injector) With(req *http.Request, kind Kind) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	i.mu.Lock()
	f := fate{kind, i.n, i.cfg.MaxDelay}
	i.n++
	i.counts[kind]++
	i.mu.Unlock()
	return i.send(req, Operation(req), body, f)
}

// send does with a request what was drawn for it.
func (i *Injector) send(req *http.Request, op string, body []byte, f fate) (resp *http.Response, err error) {
	ctx := req.Context()
	switch f.kind {
	case DropRequest:
		return nil, reset()
	case Refuse:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case Error500:
		return answer(req, http.StatusInternalServerError, "InternalServerError"), nil
	case Throttle:
		return answer(req, http.StatusBadRequest, "ProvisionedThroughputExceededException"), nil
	case TransactionConflict:
		return Conflict(req, op, body, 0), nil
	case Empty:
		return blank(req, ""), nil
	case Blank:
		return blank(req, "{}"), nil
	case Delay:
		err = pause(ctx, f.delay)
	case HoldRequest:
		err = i.hold(ctx, newHeld(op, f.n, body))
	case LoseResponse, CutResponse, Resend, LateDuplicate, DelayResponse, Truncate, Error500After, EmptyAfter, NoImage, HoldResponse:
		return i.delivered(req, op, body, f)
	}
	if err != nil {
		return nil, err
	}
	return i.next.Do(copyOf(ctx, req, body))
}

// delivered does what befalls a request after the engine acted on it.
func (i *Injector) delivered(req *http.Request, op string, body []byte, f fate) (*http.Response, error) {
	resp, reply, err := i.surely(req, body)
	if err != nil {
		return nil, err // a real fault; no need for another
	}
	ctx := req.Context()
	switch f.kind {
	case LoseResponse:
		return nil, reset()
	case CutResponse:
		return cut(resp, reply), nil
	case Truncate:
		return truncated(resp, reply), nil
	case Error500After:
		return answer(req, http.StatusInternalServerError, "InternalServerError"), nil
	case EmptyAfter:
		return blank(req, ""), nil
	case NoImage:
		return withoutImages(resp, reply)
	case Resend:
		resp, _, err = i.surely(req, body)
	case LateDuplicate:
		i.duplicate(req, body, f.delay)
	case DelayResponse:
		err = pause(ctx, f.delay)
	case HoldResponse:
		err = i.hold(ctx, newHeld(op, f.n, body))
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// surely delivers a request whatever becomes of the caller, and waits until the
// engine has acted.
func (i *Injector) surely(req *http.Request, body []byte) (*http.Response, []byte, error) {
	return whole(i.next.Do(copyOf(context.WithoutCancel(req.Context()), req, body)))
}

func reset() error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} }

// pause waits, or returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err()
}

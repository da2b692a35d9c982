package semaphore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// conflicts makes of the engine, which does one thing after the other, a
// service like Amazon's: a request takes a while, and a transaction is refused
// that comes to an item while another write is at it, as is a plain write that
// comes while a transaction is.
type conflicts struct {
	latency  time.Duration
	requests atomic.Int64
	looks    atomic.Int64 // for work, at all resources: they cost by the time, not by the job
	refused  atomic.Int64

	mu    sync.Mutex
	plain map[string]int // guarded by mu: plain writes under way, by item
	trans map[string]int // guarded by mu: transactions under way
}

func newConflicts(latency time.Duration) *conflicts {
	return &conflicts{latency: latency, plain: map[string]int{}, trans: map[string]int{}}
}

// client is a client whose requests conflict with those of the others.
func (c *conflicts) client() *dynamodb.Client {
	return rig.Client(func(o *dynamodb.Options) { o.HTTPClient = conflictDoer{c, o.HTTPClient} })
}

type conflictDoer struct {
	*conflicts
	next dynamodb.HTTPClient
}

// Do implements the SDK's HTTP client.
func (c conflictDoer) Do(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if bytes.Contains(body, []byte(`"RESOURCE#`)) && fault.Operation(req) == "Query" {
		c.looks.Add(1)
	} else {
		c.requests.Add(1)
	}
	req.Body = io.NopCloser(bytes.NewReader(body))
	op := fault.Operation(req)
	keys, under, others := writtenBy(op, body), c.plain, []map[string]int{c.trans}
	if op == "TransactWriteItems" {
		under, others = c.trans, append(others, c.plain)
	}
	at := c.enter(keys, under, others)
	time.Sleep(c.latency)
	if at >= 0 {
		c.refused.Add(1)
		return conflicted(req, op, len(keys), at), nil
	}
	defer c.leave(keys, under)
	return c.next.Do(req)
}

// enter notes a write at its items; it returns which of them another one is at,
// or -1.
func (c *conflicts) enter(keys []string, under map[string]int, others []map[string]int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range keys {
		for _, other := range others {
			if other[key] > 0 {
				return i
			}
		}
	}
	for _, key := range keys {
		under[key]++
	}
	return -1
}

func (c *conflicts) leave(keys []string, under map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		under[key]--
	}
}

// writtenBy are the items that a request writes.
func writtenBy(op string, body []byte) (keys []string) {
	type write struct{ Key, Item map[string]map[string]any }
	var in struct {
		write
		TransactItems []struct{ Put, Update, Delete *write }
	}
	_ = json.Unmarshal(body, &in)
	add := func(w *write) {
		key := w.Key
		if key == nil {
			key = w.Item
		}
		keys = append(keys, fmt.Sprint(key["pk"], key["sk"]))
	}
	for _, t := range in.TransactItems {
		for _, w := range []*write{t.Put, t.Update, t.Delete} {
			if w != nil {
				add(w)
			}
		}
	}
	if op == "UpdateItem" || op == "PutItem" || op == "DeleteItem" {
		add(&in.write)
	}
	return keys
}

func conflicted(req *http.Request, op string, n, at int) *http.Response {
	answer := map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#TransactionConflictException", "message": "conflict"}
	if op == "TransactWriteItems" {
		reasons := make([]map[string]string, n)
		for i := range reasons {
			reasons[i] = map[string]string{"Code": "None"}
		}
		reasons[at] = map[string]string{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
		answer = map[string]any{"__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException", "message": "cancelled", "CancellationReasons": reasons}
	}
	text, _ := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}},
		Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: req}
}

// With conflicts as Amazon's service makes them, jobs of one resource cost few
// requests, whatever the limit, and as many run at once as the limit allows.
func TestRequestsUnderConflicts(t *testing.T) {
	for _, run := range []struct {
		limit, dispatchers, workers, jobs int
		most                              float64 // requests per job
	}{{1, 1, 8, rig.Share(25, 40), 5}, {1, 3, 4, 40, 8}, {10, 5, 2, rig.Share(40, 150), 12}, {50, 5, 10, rig.Share(100, 400), 8}} {
		t.Run(fmt.Sprintf("limit %d, %d dispatchers of %d", run.limit, run.dispatchers, run.workers), func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, semaphore.Config{})
			rig.Is(t, s.SetLimit(t.Context(), "staging", run.limit))
			enqueue(t, s, "staging", run.jobs)
			net := newConflicts(4 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			most := min(run.limit, run.dispatchers*run.workers)
			var inside, done, over atomic.Int64
			full := make(chan struct{})
			var all sync.WaitGroup
			for range run.dispatchers {
				d := rig.Must(semaphore.New[deploy](net.client(), b.Table, semaphore.Config{Workers: run.workers}))(t)
				all.Go(func() {
					rig.Is(t, d.Run(ctx, func(held context.Context, _ *semaphore.Job[deploy]) error {
						switch n := int(inside.Add(1)); {
						case n > most:
							over.Add(1)
						case n == most && done.Load() == 0:
							close(full)
						}
						select { // the first ones wait for each other: all workers have a job then
						case <-full:
						case <-held.Done():
						}
						time.Sleep(20 * time.Millisecond) // the work
						inside.Add(-1)
						if done.Add(1) == int64(run.jobs) {
							cancel()
						}
						return nil
					}))
				})
			}
			all.Wait()
			requests := float64(net.requests.Load()) / float64(run.jobs)
			t.Logf("%.1f requests per job, %d in conflict, beside %d of looks for work", requests, net.refused.Load(), net.looks.Load())
			if done.Load() != int64(run.jobs) || over.Load() > 0 {
				t.Errorf("%d jobs done, want %d; %d beyond the limit", done.Load(), run.jobs, over.Load())
			}
			if requests > run.most {
				t.Errorf("%.1f requests per job", requests)
			}
			wantResource(t, s, "staging", 0, 0, 0)
			audit(t, s)
		})
	}
}

// Calls by hand share transactions, too, and each gets a job of its own.
func TestCallsByHandUnderConflicts(t *testing.T) {
	b := newBench(t)
	net := newConflicts(2 * time.Millisecond)
	s := rig.Must(semaphore.New[deploy](net.client(), b.Table, semaphore.Config{}))(t)
	const n = 20
	rig.Is(t, s.SetLimit(t.Context(), "staging", n))
	enqueue(t, s, "staging", n)
	net.requests.Store(0)
	var all sync.WaitGroup
	var seen sync.Map
	ready := make(chan *semaphore.Job[deploy], n)
	for range n {
		all.Go(func() { ready <- rig.Must(s.Next(t.Context(), "staging"))(t) })
	}
	all.Wait()
	for range n {
		j := <-ready
		if _, again := seen.LoadOrStore(j.ID(), true); again {
			t.Errorf("job %s twice", j.ID())
		}
		all.Go(func() { rig.Is(t, j.Done(t.Context())) })
	}
	all.Wait()
	if requests := net.requests.Load(); requests > 5*n {
		t.Errorf("%d requests for %d jobs, %d in conflict", requests, n, net.refused.Load())
	}
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

// A job that the process of the dispatcher enqueues is started at once: without
// a look, of which there are none for an hour.
func TestAJobOfThisProcessStartsAtOnce(t *testing.T) {
	b := newBench(t)
	producer := b.open(t, semaphore.Config{})
	for name, cfg := range map[string]semaphore.Config{"new resource": {}, "known resource": {}} {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		cfg.Poll, cfg.Wait = time.Hour, repo.Wait{Min: time.Hour, Max: time.Hour}
		looks := make(chan struct{}, 100)
		client := rig.Client(func(o *dynamodb.Options) {
			counter := fault.NewCounter(o.HTTPClient)
			counter.OnRequest(func(op string, body []byte) {
				if op == "Query" && strings.Contains(string(body), "RESOURCE#f") { // the last of a look
					looks <- struct{}{}
				}
			})
			o.HTTPClient = counter
		})
		s := rig.Must(semaphore.New[deploy](client, b.Table, cfg))(t)
		started := make(chan int, 10)
		ended := make(chan error)
		go func() {
			ended <- s.Run(ctx, func(_ context.Context, j *semaphore.Job[deploy]) error { started <- j.Value().N; return nil })
		}()
		<-looks
		for n := range 3 {
			put(t, producer, "staging", deploy{"v", n})
			select {
			case got := <-started:
				if got != n {
					t.Errorf("%s: job %d, want %d", name, got, n)
				}
			case <-ctx.Done():
				t.Errorf("%s: job %d was not started", name, n)
			}
		}
		cancel()
		rig.Is(t, <-ended)
	}
}

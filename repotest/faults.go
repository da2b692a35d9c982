package repotest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
)

// Fault is what happens to a request, or to its answer.
type Fault int

// What can happen. The client repeats most of these by itself, as it does against the
// service; the others end the call with an error.
const (
	RequestLost     Fault = iota + 1 // it does not arrive; the connection is reset
	AnswerLost                       // it is carried out; the connection is reset
	ArrivesTwice                     // it is carried out, and once more; the second answer arrives
	ArrivesLate                      // it is carried out and answered, and carried out once more some milliseconds later
	Throttled                        // it is refused, for the table is busy
	Conflicted                       // it is refused, for a transaction is at the item
	ServerError                      // it is not carried out, and answered by a 500
	ServerErrorLate                  // it is carried out, and answered by a 500
)

// kinds are the faults as tests read of them, and as the transport knows them.
var kinds = map[Fault]struct {
	name string
	kind fault.Kind
}{
	RequestLost:     {"request lost", fault.DropRequest},
	AnswerLost:      {"answer lost", fault.LoseResponse},
	ArrivesTwice:    {"arrives twice", fault.Resend},
	ArrivesLate:     {"arrives once more later", fault.LateDuplicate},
	Throttled:       {"throttled", fault.Throttle},
	Conflicted:      {"conflicted", fault.TransactionConflict},
	ServerError:     {"server error", fault.Error500},
	ServerErrorLate: {"server error after it was carried out", fault.Error500After},
}

func (f Fault) String() string {
	if k, ok := kinds[f]; ok {
		return k.name
	}
	return fmt.Sprintf("Fault(%d)", int(f))
}

// AllFaults are all of them.
func AllFaults() []Fault { return slices.Sorted(maps.Keys(kinds)) }

// operations are what can be asked of the service. A name that is none of them, such as
// one misspelt, would be a fault that never happens.
var operations = []string{
	"BatchExecuteStatement", "BatchGetItem", "BatchWriteItem", "CreateTable", "DeleteItem", "DeleteTable", "DescribeTable", "DescribeTimeToLive",
	"ExecuteStatement", "ExecuteTransaction", "GetItem",
	"ListTables", "PutItem", "Query", "Scan", "TransactGetItems", "TransactWriteItems", "UpdateItem", "UpdateTable", "UpdateTimeToLive",
}

// Faults is a client whose requests are counted, and break where the test says so. What
// breaks is one message between the client and the engine; everything else is the real
// client and the real engine. It is safe for concurrent use.
//
// Operations have the names of the service: "GetItem", "UpdateItem", "DeleteItem",
// "TransactWriteItems", "Query" ... Which requests a call sends its documentation says:
// a locked change is two times UpdateItem. Each attempt of the client is a request.
type Faults struct {
	tb     testing.TB
	client *dynamodb.Client
	net    *fault.Injector
	count  *fault.Counter
	// lenient lets faults be that do not happen: how often a request is sent is not known.
	lenient bool

	mu    sync.Mutex
	rules []*rule // guarded by mu
}

// rule is one order of the test.
type rule struct {
	op            string
	nth           int // 0: each
	kind          Fault
	before, after func()
	seen          int  // guarded by Faults.mu: requests of the operation since
	happened      bool // guarded by Faults.mu
}

func (r *rule) String() string {
	what := "something is to be done at it"
	if r.kind != 0 {
		what = r.kind.String()
	}
	if r.nth == 0 {
		return fmt.Sprintf("%s, each (%s)", r.op, what)
	}
	return fmt.Sprintf("%s number %d (%s)", r.op, r.nth, what)
}

// NewFaults makes a client that sends its requests through client, by the same
// retry policy but for its pauses, which are 20 ms at most. When the test ends, and at a
// [Faults.Reset], it fails if a fault that was asked for has not happened: it would have
// tested nothing.
func NewFaults(tb testing.TB, client *dynamodb.Client) *Faults {
	tb.Helper()
	if client == nil {
		tb.Fatal("repotest.NewFaults: the client is nil")
	}
	return newFaults(tb, client, client.Options().Retryer.MaxAttempts())
}

// newFaults is NewFaults with a number of attempts for each request.
func newFaults(tb testing.TB, client *dynamodb.Client, attempts int) *Faults {
	tb.Helper()
	f := &Faults{tb: tb}
	f.client = dynamodb.New(client.Options(), func(o *dynamodb.Options) {
		f.net = fault.New(o.HTTPClient, fault.Config{})
		f.count = fault.NewCounter(transport{f})
		o.HTTPClient = f.count
		o.RetryMaxAttempts = 0 // by which the copy's policy would be wrapped once more
		o.Retryer = retry.AddWithMaxAttempts(retry.AddWithMaxBackoffDelay(o.Retryer, 20*time.Millisecond), attempts)
	})
	tb.Cleanup(f.finish)
	return f
}

// Client is the client whose requests break.
func (f *Faults) Client() *dynamodb.Client { return f.client }

// Nth breaks one request: the nth of an operation from now on, counted from 1.
func (f *Faults) Nth(operation string, nth int, kind Fault) {
	f.tb.Helper()
	f.add(&rule{op: operation, nth: f.counted(nth), kind: f.known(kind)})
}

// Each breaks every request of an operation from now on.
func (f *Faults) Each(operation string, kind Fault) {
	f.tb.Helper()
	f.add(&rule{op: operation, kind: f.known(kind)})
}

// Before calls do when the nth request of an operation from now on, counted from 1, is
// about to be sent: for what others do in that moment. The request waits for its end; do
// may send requests itself, and by the same client.
func (f *Faults) Before(operation string, nth int, do func()) {
	f.tb.Helper()
	f.add(&rule{op: operation, nth: f.counted(nth), before: do})
}

// After is Before, when the request was carried out and its answer has not arrived.
func (f *Faults) After(operation string, nth int, do func()) {
	f.tb.Helper()
	f.add(&rule{op: operation, nth: f.counted(nth), after: do})
}

// Requests is how many requests of some operations were sent; of all, if none is named.
func (f *Faults) Requests(ofOperations ...string) (n int) {
	f.tb.Helper()
	if len(ofOperations) == 0 {
		return f.count.Total()
	}
	for _, op := range ofOperations {
		f.checkOperation(op)
		n += f.count.Count(op)
	}
	return n
}

// Reset begins anew: nothing breaks any more, and no request is counted. It waits for
// what arrives late. The test fails if something that was asked for has not happened, as
// it does at its end.
func (f *Faults) Reset() {
	f.tb.Helper()
	f.finish()
	f.count.Reset()
}

func (f *Faults) add(r *rule) {
	f.tb.Helper()
	f.checkOperation(r.op)
	if r.kind == 0 && r.before == nil && r.after == nil {
		f.tb.Fatalf("repotest: there is nothing to do at %s number %d: the function is nil", r.op, r.nth)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, r)
}

func (f *Faults) checkOperation(op string) {
	f.tb.Helper()
	if !slices.Contains(operations, op) {
		f.tb.Fatalf("repotest: there is no operation %q: use one of %v", op, operations)
	}
}

func (f *Faults) counted(nth int) int {
	f.tb.Helper()
	if nth < 1 {
		f.tb.Fatalf("repotest: there is no request number %d: they are counted from 1", nth)
	}
	return nth
}

func (f *Faults) known(kind Fault) Fault {
	f.tb.Helper()
	if _, ok := kinds[kind]; !ok {
		f.tb.Fatalf("repotest: there is no fault %v: use one of %v", kind, AllFaults())
	}
	return kind
}

// finish ends all orders, and tells of those that have not happened.
func (f *Faults) finish() {
	f.tb.Helper()
	f.mu.Lock()
	rules := f.rules
	f.rules = nil
	f.mu.Unlock()
	f.net.Wait()
	for _, r := range rules { // nobody writes in them any more
		if !r.happened && !f.lenient && !f.tb.Failed() {
			f.tb.Errorf("a fault did not happen: %v; %d of its operation were sent since. All requests: %v", r, r.seen, f.count.Counts())
		}
	}
}

// meets finds the orders that a request meets: of faults the first.
func (f *Faults) meets(op string) (met rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.op != op {
			continue
		}
		if r.seen++; r.nth != 0 && r.nth != r.seen {
			continue
		}
		switch {
		case r.before != nil && met.before == nil:
			met.before, r.happened = r.before, true
		case r.after != nil && met.after == nil:
			met.after, r.happened = r.after, true
		case r.kind != 0 && met.kind == 0:
			met.kind, r.happened = r.kind, true
		}
	}
	return met
}

// transport is what the client's requests pass.
type transport struct{ *Faults }

// Do implements the SDK's HTTP client.
func (f transport) Do(req *http.Request) (*http.Response, error) {
	met := f.meets(fault.Operation(req))
	if met.before != nil {
		met.before()
	}
	resp, err := f.net.With(req, kinds[met.kind].kind)
	if met.after != nil {
		met.after()
	}
	return resp, err
}

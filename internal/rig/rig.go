// Package rig is what the tests of all packages with tables have in common: one
// engine per test binary, a table name and a client per test, whose requests
// are counted and can be broken.
package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/localdb"
)

var engine *localdb.Engine

// Main runs a package's tests with an engine. TestMain calls it.
func Main(m *testing.M) { MainOr(m, nil) }

// MainOr is Main for packages whose tests start processes: one that [Child]
// made runs child instead of the tests, on the same engine.
func MainOr(m *testing.M, child func(args []string) error) {
	runSideBySide()
	endpoint := os.Getenv(childEndpoint)
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	var err error
	engine, err = localdb.Start(ctx, localdb.Config{Endpoint: endpoint})
	cancel()
	code := 0
	if err == nil && endpoint != "" {
		err = child(os.Args[1:])
	} else if err == nil {
		code = m.Run()
		_ = engine.Close()
	}
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// runSideBySide lets more parallel tests run at once than there are processors:
// what they do is wait, for leases to end and for the engine. The flag -parallel
// is obeyed.
func runSideBySide() {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		_ = flag.Set("test.parallel", "8")
	}
}

// Garbage is collected less in every test's process, also where only models are searched:
// it has little memory, which is spent for a seventh of its time, of a search for a third.
// The variable GOGC is obeyed.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// childEndpoint tells a process that it is a child, and where the engine is.
const childEndpoint = "DYNAHOLD_TEST_CHILD_OF"

// Child is a process, to be started, that runs what the package gave to
// [MainOr], with these arguments.
func Child(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), Must(os.Executable())(t), args...) // this test's own binary
	cmd.Env = append(os.Environ(), childEndpoint+"="+engine.Endpoint())
	cmd.Stderr = os.Stderr
	return cmd
}

// Endpoint is where the engine is.
func Endpoint() string { return engine.Endpoint() }

// Script decides what befalls a request.
type Script = func(op string, n int, body []byte) fault.Kind

// Rig is a table name with a client. The table, if the test makes it, goes with
// the test.
type Rig struct {
	Table  string
	Client *dynamodb.Client
	Count  *fault.Counter  // of Client's requests
	Net    *fault.Injector // what they pass through

	script atomic.Pointer[Script]
}

// Peer is a client of its own on the same table, as another process has it.
func (r *Rig) Peer() *Rig {
	p := &Rig{Table: r.Table}
	p.Client = Client(func(o *dynamodb.Options) {
		p.Net = fault.New(o.HTTPClient, fault.Config{Script: func(op string, n int, body []byte) fault.Kind {
			if s := p.script.Load(); s != nil {
				return (*s)(op, n, body)
			}
			return fault.None
		}})
		p.Count = fault.NewCounter(p.Net)
		o.HTTPClient = p.Count
	})
	return p
}

// New makes a rig.
func New(t testing.TB) *Rig {
	t.Helper()
	r := (&Rig{Table: "test-" + rand.Text()}).Peer()
	t.Cleanup(func() {
		var none *types.ResourceNotFoundException
		_, err := Client().DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &r.Table})
		if err != nil && !errors.As(err, &none) {
			t.Error(err)
		}
	})
	return r
}

// Client is a client of the engine with the SDK's retry policy but not its
// patience.
func Client(options ...func(*dynamodb.Options)) *dynamodb.Client {
	return engine.NewClient(append([]func(*dynamodb.Options){func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
			so.MaxAttempts = 10
			so.MaxBackoff = 20 * time.Millisecond
			so.RateLimiter = ratelimit.None
		})
	}}, options...)...)
}

// Over is an option of a client: its network.
func Over(network fault.Doer) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPClient = network }
}

// Broken is an option of a client that comes behind its network: what befalls its
// requests.
func Broken(s Script) func(*dynamodb.Options) {
	return func(o *dynamodb.Options) { o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: s}) }
}

// WithHoursBetweenAttempts is an option of a client: its policy's own sleeps would not
// end within a test.
func WithHoursBetweenAttempts(o *dynamodb.Options) {
	o.Retryer = retry.NewStandard(func(so *retry.StandardOptions) {
		so.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Hour, nil })
	})
}

// Faulty is a client whose requests are broken at random, and its injector.
func Faulty(seed uint64, rate float64, kinds ...fault.Kind) (*dynamodb.Client, *fault.Injector) {
	var in *fault.Injector
	return Client(func(o *dynamodb.Options) {
		in = fault.New(o.HTTPClient, fault.Config{Seed: seed, Rate: rate, Kinds: kinds})
		o.HTTPClient = in
	}), in
}

// Faults lets a script decide from now on what befalls the requests of Client;
// nil ends it.
func (r *Rig) Faults(s Script) {
	if s == nil {
		r.script.Store(nil)
		return
	}
	r.script.Store(&s)
}

// Always lets the same befall every request of Client from now on.
func (r *Rig) Always(kind fault.Kind) {
	r.Faults(func(string, int, []byte) fault.Kind { return kind })
}

// Nth breaks the nth request of an operation from now on, counted from 0.
func (r *Rig) Nth(op string, nth int, kind fault.Kind) {
	var seen atomic.Int64
	r.Faults(func(o string, _ int, _ []byte) fault.Kind {
		if o == op && seen.Add(1) == int64(nth)+1 {
			return kind
		}
		return fault.None
	})
}

// Item reads an item as DynamoDB has it.
func (r *Rig) Item(t testing.TB, key map[string]types.AttributeValue) map[string]types.AttributeValue {
	t.Helper()
	out, err := Client().GetItem(context.Background(), &dynamodb.GetItemInput{TableName: &r.Table, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	return out.Item
}

// Must fails the test on an error: Must(f(x))(t).
func Must[V any](v V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// Is fails the test unless err is each of the targets; none means no error.
func Is(t testing.TB, err error, targets ...error) {
	t.Helper()
	if len(targets) == 0 && err != nil {
		t.Errorf("error %v", err)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("error %v, want %v", err, target)
		}
	}
}

// Equal fails the test unless a value is as it should be; what says of which it speaks.
func Equal[V comparable](t testing.TB, got, want V, what string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", fmt.Sprintf(what, args...), got, want)
	}
}

// Shortly is a context for a wait that is in vain: it ends soon, but not before a busy
// machine has answered the first request.
func Shortly(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

// Patience is how long a test waits for what must happen: far longer than a
// starved machine needs, for only a test that fails waits for so long.
const Patience = 30 * time.Second

// Ended waits for the end of a context and returns its cause.
func Ended(ctx context.Context, t testing.TB) error {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(Patience):
		t.Fatalf("the context did not end within %v", Patience)
	}
	return context.Cause(ctx)
}

// Await looks again and again until something has happened that has no channel
// of its own to tell of it.
func Await(t testing.TB, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", Patience, what)
		}
	}
}

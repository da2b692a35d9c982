package localdb_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/localdb"
)

// withoutEndpoint makes sure that an engine is started, whatever endpoint the
// environment names.
func withoutEndpoint(t *testing.T) {
	t.Helper()
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
	t.Setenv("AWS_ENDPOINT_URL", "")
}

func start(t *testing.T, cfg localdb.Config) *localdb.Engine {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startDeadline)
	defer cancel()
	e, err := localdb.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func createTable(ctx context.Context, client *dynamodb.Client, name string) error {
	_, err := client.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName:   aws.String(name),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{
			{AttributeName: aws.String("id"), AttributeType: types.ScalarAttributeTypeS},
		},
		KeySchema: []types.KeySchemaElement{
			{AttributeName: aws.String("id"), KeyType: types.KeyTypeHash},
		},
	})
	return err
}

func tables(t *testing.T, client *dynamodb.Client) string {
	t.Helper()
	out, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(out.TableNames, ",")
}

func TestEnginesAreIsolated(t *testing.T) {
	withoutEndpoint(t)
	a, b := start(t, localdb.Config{}), start(t, localdb.Config{})
	if a.Endpoint() == b.Endpoint() {
		t.Fatalf("both engines at %s", a.Endpoint())
	}
	if !a.Managed() || !b.Managed() {
		t.Fatal("a started engine is managed")
	}
	if err := createTable(t.Context(), a.Client(), "only-in-a"); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, a.Client()); got != "only-in-a" {
		t.Errorf("tables of a: %q", got)
	}
	if got := tables(t, b.Client()); got != "" {
		t.Errorf("tables of b: %q", got)
	}
}

func TestParallelStartsInOneProcess(t *testing.T) {
	withoutEndpoint(t)
	const n = 16
	var wg sync.WaitGroup
	endpoints := make([]string, n)
	for i := range n {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), startDeadline)
			defer cancel()
			e, err := localdb.Start(ctx, localdb.Config{})
			if err != nil {
				t.Error(err)
				return
			}
			endpoints[i] = e.Endpoint()
			if _, err := e.Client().ListTables(ctx, &dynamodb.ListTablesInput{}); err != nil {
				t.Error(err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i, endpoint := range endpoints {
		if endpoint == "" {
			t.Errorf("start %d got no engine", i)
		}
	}
}

func TestCloseTwice(t *testing.T) {
	withoutEndpoint(t)
	e := start(t, localdb.Config{})
	if err := createTable(t.Context(), e.Client(), "table"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	once := func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 }
	_, err := e.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{}, once)
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("after Close: %v, want a refused connection", err)
	}
}

// Whatever the file's name: SQLite keeps some in memory, and the engine takes some for options.
func TestPathKeepsData(t *testing.T) {
	withoutEndpoint(t)
	for _, file := range []string{filepath.Join(t.TempDir(), "data.db"), "data.db", ":memory:", "file:data.db?mode=memory", "-data.db"} {
		t.Run(file, func(t *testing.T) {
			t.Chdir(t.TempDir())
			first := start(t, localdb.Config{Path: file})
			if err := createTable(t.Context(), first.Client(), "kept"); err != nil {
				t.Fatal(err)
			}
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := start(t, localdb.Config{Path: file})
			if got := tables(t, second.Client()); got != "kept" {
				t.Fatalf("tables after a restart: %q", got)
			}
		})
	}
}

// What two engines on one file make of a condition nobody knows.
func TestTheDataOfAnEngineAreNoOthers(t *testing.T) {
	withoutEndpoint(t)
	if runtime.GOOS == "windows" {
		t.Skip("there are no such locks")
	}
	file := filepath.Join(t.TempDir(), "data.db")
	first := start(t, localdb.Config{Path: file})
	if e, err := localdb.Start(t.Context(), localdb.Config{Path: file}); err == nil || !strings.Contains(err.Error(), "another engine's") {
		if err == nil {
			_ = e.Close()
		}
		t.Errorf("a second engine on the same file: %v", err)
	}
	if err := createTable(t.Context(), first.Client(), "kept"); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := tables(t, start(t, localdb.Config{Path: file}).Client()); got != "kept" {
		t.Errorf("once it is closed: %q", got)
	}
}

func TestStartHonoursItsContext(t *testing.T) {
	withoutEndpoint(t)
	cause := errors.New("not today")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if e, err := localdb.Start(ctx, localdb.Config{}); !errors.Is(err, cause) {
		if err == nil {
			_ = e.Close()
		}
		t.Fatalf("got %v, want %v", err, cause)
	}
}

// counter counts requests on their way to the engine.
type counter struct {
	next dynamodb.HTTPClient
	n    atomic.Int64
}

func (c *counter) Do(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.next.Do(r)
}

func TestOptionsReachTheClients(t *testing.T) {
	withoutEndpoint(t)
	var all, one counter
	count := func(c *counter) func(*dynamodb.Options) {
		return func(o *dynamodb.Options) { c.next, o.HTTPClient = o.HTTPClient, c }
	}
	e := start(t, localdb.Config{Options: []func(*dynamodb.Options){count(&all)}})
	tables(t, e.Client())
	tables(t, e.NewClient(count(&one)))
	if all.n.Load() != 2 || one.n.Load() != 1 {
		t.Fatalf("Config.Options saw %d requests, NewClient's %d; want 2 and 1", all.n.Load(), one.n.Load())
	}
}

func TestClientServesATest(t *testing.T) {
	if got := tables(t, localdb.Client(t)); got != "" {
		t.Logf("a shared server with tables %q", got)
	}
}

// In a shared folder a link may be another's, and lead to any file of the user's.
func TestLinksInThePlaceOfTheDataAreRefused(t *testing.T) {
	withoutEndpoint(t)
	for _, end := range []string{"", "-wal"} {
		dir := t.TempDir()
		other, file := filepath.Join(dir, "letter"), filepath.Join(dir, "data.db")
		if err := os.WriteFile(other, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(other, file+end); err != nil {
			t.Fatal(err)
		}
		if engine, err := localdb.Start(t.Context(), localdb.Config{Path: file}); err == nil || !strings.Contains(err.Error(), "link") {
			t.Errorf("%s: error %v", end, err)
			if err == nil {
				_ = engine.Close()
			}
		}
		if info, err := os.Stat(other); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: the other file: %v, %v", end, info.Mode(), err)
		}
	}
}

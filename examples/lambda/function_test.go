package main

import (
	"context"
	"crypto/rand"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
	"go.yaml.in/yaml/v3"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// prepared is a function, and the operations that it asks DynamoDB for.
func prepared(t *testing.T) (*function, *operations) {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	name := "lambda-test-" + rand.Text()[:8]
	table, err := repo.NewTable[account](engine.Client(), name, repo.TableConfig{})
	if err == nil {
		err = table.EnsureTable(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	asked := &operations{client: engine.Client(), table: name}
	f, err := newFunction(engine.NewClient(asked.watch), name)
	if err != nil {
		t.Fatal(err)
	}
	return f, asked
}

// operations counts a function's requests by their name.
type operations struct {
	client *dynamodb.Client // of the test's own
	table  string

	mu  sync.Mutex
	all map[string]int // guarded by mu
}

func (o *operations) watch(options *dynamodb.Options) {
	note := middleware.InitializeMiddlewareFunc("Note", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.all == nil {
			o.all = map[string]int{}
		}
		o.all[middleware.GetOperationName(ctx)]++
		return next.HandleInitialize(ctx, in)
	})
	options.APIOptions = append(options.APIOptions, func(s *middleware.Stack) error { return s.Initialize.Add(note, middleware.After) })
}

func (o *operations) total() (n int) {
	for _, k := range o.all {
		n += k
	}
	return n
}

func (f *function) cents(t *testing.T, id string) int64 {
	t.Helper()
	a, err := f.accounts.Get(t.Context(), repo.Key{Partition: id})
	if err != nil {
		t.Fatal(err)
	}
	return a.Cents
}

func event(t *testing.T, name string) events.SQSEvent {
	t.Helper()
	files, err := readEvents()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.name == name {
			return events.SQSEvent{Records: f.records}
		}
	}
	t.Fatalf("there is no event %s", name)
	return events.SQSEvent{}
}

func failed(ctx context.Context, t *testing.T, f *function, batch events.SQSEvent) (ids []string) {
	t.Helper()
	response, err := f.handle(ctx, batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range response.BatchItemFailures {
		ids = append(ids, m.ItemIdentifier)
	}
	return ids
}

func TestOnlyWhatFailedComesAgain(t *testing.T) {
	f, _ := prepared(t)
	if ids := failed(t.Context(), t, f, event(t, "01-opening")); len(ids) != 0 {
		t.Errorf("failed: %v", ids)
	}
	batch := event(t, "07-poison")
	want := []string{batch.Records[0].MessageId, batch.Records[1].MessageId, batch.Records[2].MessageId, batch.Records[3].MessageId}
	for range 2 {
		if ids := failed(t.Context(), t, f, batch); !slices.Equal(ids, want) {
			t.Errorf("failed: %v, want %v", ids, want)
		}
		if cents := f.cents(t, "cid"); cents != 7500+4200 {
			t.Errorf("cid has %d cents", cents)
		}
	}
}

// TestAnotherAmountIsAnotherTransfer: it is not taken for the one that was booked under its id.
func TestAnotherAmountIsAnotherTransfer(t *testing.T) {
	f, _ := prepared(t)
	for i, want := range []error{nil, nil, repo.ErrMismatch} {
		body := `{"id":"t1","account":"ann","cents":100}`
		if want != nil {
			body = `{"id":"t1","account":"ann","cents":900}`
		}
		got := f.book(t.Context(), events.SQSMessage{Body: body})
		if !errors.Is(got.err, want) || got.repeated != (i == 1) {
			t.Errorf("delivery %d: %+v, want %v", i+1, got, want)
		}
	}
	if cents := f.cents(t, "ann"); cents != 100 {
		t.Errorf("ann has %d cents", cents)
	}
}

// TestTransfersOfOneAccountShareWrites: ten transfers to one account are not twenty
// requests.
func TestTransfersOfOneAccountShareWrites(t *testing.T) {
	f, asked := prepared(t)
	failed(t.Context(), t, f, event(t, "01-opening"))
	before := asked.total()
	if ids := failed(t.Context(), t, f, event(t, "02-one-account")); len(ids) != 0 {
		t.Errorf("failed: %v", ids)
	}
	if n := asked.total() - before; n > 6 {
		t.Errorf("%d requests for ten transfers to one account", n)
	}
	if cents := f.cents(t, "ann"); cents != 61376 {
		t.Errorf("ann has %d cents", cents)
	}
}

// TestNoTimeIsLeft: a call without time answers, writes nothing, and all comes again.
func TestNoTimeIsLeft(t *testing.T) {
	f, asked := prepared(t)
	ctx, cancel := context.WithTimeout(t.Context(), reserve/2)
	defer cancel()
	if ids := failed(ctx, t, f, event(t, "01-opening")); len(ids) != 6 || ctx.Err() != nil {
		t.Errorf("failed: %v, the call's time: %v", ids, ctx.Err())
	}
	if asked.all["UpdateItem"] != 0 {
		t.Errorf("requests without time: %v", asked.all)
	}
}

// TestTheTemplateIsTheFunctions: it gives the function the rights that it uses and no
// others, a table that it accepts, and the times that the code counts with.
func TestTheTemplateIsTheFunctions(t *testing.T) {
	text, err := os.ReadFile("template.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var tpl map[string]any
	if err := yaml.Unmarshal(text, &tpl); err != nil {
		t.Fatal(err)
	}
	get := func(path ...any) any {
		t.Helper()
		var at any = tpl
		for _, p := range path {
			switch p := p.(type) {
			case string:
				m, _ := at.(map[string]any)
				at = m[p]
			case int:
				l, _ := at.([]any)
				if p >= len(l) {
					t.Fatalf("the template has no %v", path)
				}
				at = l[p]
			}
		}
		if at == nil {
			t.Fatalf("the template has no %v", path)
		}
		return at
	}
	property := func(resource string, path ...any) any {
		t.Helper()
		return get(append([]any{"Resources", resource, "Properties"}, path...)...)
	}
	f, asked := prepared(t)
	for _, name := range []string{"01-opening", "02-one-account", "03-redelivered", "07-poison"} {
		failed(t.Context(), t, f, event(t, name))
	}
	var used, given []string
	for operation := range maps.Keys(asked.all) {
		used = append(used, "dynamodb:"+operation)
	}
	for _, action := range property("Role", "Policies", 0, "PolicyDocument", "Statement", 0, "Action").([]any) {
		given = append(given, action.(string))
	}
	slices.Sort(used)
	slices.Sort(given)
	if !slices.Equal(used, given) {
		t.Errorf("the function uses %v, the template allows %v", used, given)
	}
	for _, c := range []struct{ what, got, want any }{
		{"time", property("Function", "Timeout"), int(timeout / time.Second)},
		{"visibility", property("Transfers", "VisibilityTimeout"), 6 * int(timeout/time.Second)},
		{"receives", property("Transfers", "RedrivePolicy", "maxReceiveCount"), maxReceives},
		{"table", property("Function", "Environment", "Variables", "TABLE"), "Accounts"},
		{"key", property("Accounts", "KeySchema", 0, "AttributeName"), "id"},
		{"key's type", property("Accounts", "AttributeDefinitions", 0, "AttributeType"), "S"},
		{"TTL", property("Accounts", "TimeToLiveSpecification", "AttributeName"), "expiresAt"},
		{"verdicts", property("Source", "FunctionResponseTypes", 0), "ReportBatchItemFailures"},
	} {
		if c.got != c.want {
			t.Errorf("%s: the template says %v, the code %v", c.what, c.got, c.want)
		}
	}
	if !strings.Contains(string(text), "(function.go: 24 h)") || remember != 24*time.Hour {
		t.Errorf("the template names another time than %v", remember)
	}
}

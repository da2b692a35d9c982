package telemetry_test

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// traced is a shop, and what it has told of spans.
func traced(t *testing.T, keys bool) (*shop, *tracetest.SpanRecorder, trace.Tracer) {
	spans := tracetest.NewSpanRecorder()
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	s := newShop(t, repo.TableConfig{TracerProvider: tracers, MeterProvider: metricnoop.NewMeterProvider(), TraceKeys: keys})
	return s, spans, tracers.Tracer("the program's own")
}

// below are the spans with a name, of a trace, that stand right below a span.
func below(all []sdktrace.ReadOnlySpan, parent trace.SpanContext, name string) (found []sdktrace.ReadOnlySpan) {
	for _, s := range all {
		if s.Parent().SpanID() == parent.SpanID() && s.SpanContext().TraceID() == parent.TraceID() && strings.HasPrefix(s.Name(), name+" ") {
			found = append(found, s)
		}
	}
	return found
}

// value is an attribute of a span, as text.
func value(s sdktrace.ReadOnlySpan, key attribute.Key) string {
	for _, a := range s.Attributes() {
		if a.Key == key {
			return a.Value.String()
		}
	}
	return ""
}

// TestAChangeIsACallWithItsRequests looks at all that is told of one locked change whose
// first request is throttled.
func TestAChangeIsACallWithItsRequests(t *testing.T) {
	s, spans, own := traced(t, false)
	key := s.put(t, "apple")
	r := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
	s.Nth("UpdateItem", 1, fault.Throttle)
	ctx, root := own.Start(t.Context(), "root")
	rig.Must(r.Update(ctx, key, take))(t)
	root.End()

	calls := below(spans.Ended(), root.SpanContext(), "pessimistic.Update")
	if len(calls) != 1 {
		t.Fatalf("%d calls", len(calls))
	}
	call := calls[0]
	if call.SpanKind() != trace.SpanKindInternal || call.Status().Code != codes.Unset || value(call, "dynahold.kind") != "pessimistic" || value(call, semconv.DBCollectionNameKey) != s.Table {
		t.Errorf("call: %v %v %v", call.SpanKind(), call.Status(), call.Attributes())
	}
	if scope := call.InstrumentationScope(); scope.Name != "github.com/dynahold/dynahold" || scope.SchemaURL != semconv.SchemaURL {
		t.Errorf("scope %+v", scope)
	}
	requests := below(spans.Ended(), call.SpanContext(), "UpdateItem")
	if len(requests) != 2 {
		t.Fatalf("%d requests", len(requests))
	}
	asked := rig.Must(url.Parse(rig.Endpoint()))(t)
	retries := 0
	for _, q := range requests {
		if q.SpanKind() != trace.SpanKindClient || q.Status().Code != codes.Unset ||
			value(q, semconv.DBSystemNameKey) != semconv.DBSystemNameAWSDynamoDB.Value.AsString() || value(q, semconv.DBOperationNameKey) != "UpdateItem" ||
			value(q, semconv.AWSDynamoDBTableNamesKey) != `["`+s.Table+`"]` || value(q, semconv.ServerAddressKey) != asked.Hostname() || value(q, semconv.ServerPortKey) != asked.Port() {
			t.Errorf("request: %v %v %v", q.SpanKind(), q.Status(), q.Attributes())
		}
		for _, e := range q.Events() {
			if retries++; e.Name != "dynahold.request.retry" {
				t.Errorf("event %+v", e)
			}
		}
	}
	rig.Equal(t, retries, 1, "repetitions told")
	for _, q := range spans.Ended() {
		if value(q, "dynahold.key") != "" || strings.Contains(q.Name()+q.Status().Description, "apple") {
			t.Errorf("the key is told: %v", q)
		}
	}
}

// TestErrorsHaveATypeAndKeysAreToldWhereAskedFor looks at what is told of errors.
func TestErrorsHaveATypeAndKeysAreToldWhereAskedFor(t *testing.T) {
	for _, keys := range []bool{false, true} {
		s, spans, _ := traced(t, keys)
		r := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
		_, err := r.Update(t.Context(), repo.Key{Partition: "nothing"}, take)
		rig.Is(t, err, repo.ErrNotFound)
		for _, q := range spans.Ended() {
			if !strings.HasPrefix(q.Name(), "pessimistic.Update") {
				continue
			}
			if q.Status().Code != codes.Error || value(q, semconv.ErrorTypeKey) != "not_found" {
				t.Errorf("%v, %v", q.Status(), q.Attributes())
			}
			if told := strings.Contains(q.Status().Description, "nothing"); told != keys || (value(q, "dynahold.key") != "") != keys {
				t.Errorf("keys asked for: %v; %v, %v", keys, q.Status(), q.Attributes())
			}
		}

		// What the service says of a request may have a value. Before there was a table it
		// has refused to describe one.
		refused := 0
		for _, q := range spans.Ended() {
			if typ := value(q, semconv.ErrorTypeKey); q.SpanKind() == trace.SpanKindClient && q.Status().Code == codes.Error {
				if refused++; (q.Status().Description == typ) == keys {
					t.Errorf("texts asked for: %v; %v, %v", keys, q.Status(), typ)
				}
			}
		}
		if refused == 0 {
			t.Error("no request was refused")
		}
	}
}

// TestAPanicIsNoSuccess looks at what is told of a change that panics, which its caller gets
// as it was, and of one that ends its goroutine, as a test does by FailNow.
func TestAPanicIsNoSuccess(t *testing.T) {
	s, spans, own := traced(t, false)
	key := s.put(t, "apple")
	locking, versions := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t), rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
	combining := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Combine: true}))(t)
	for how, end := range map[string]func(){"panic": func() { panic("boom") }, "goexit": runtime.Goexit} {
		change := func(context.Context, *product) error { end(); return nil }
		for name, call := range map[string]func(context.Context){
			"pessimistic.Update":          func(ctx context.Context) { _, _ = locking.Update(ctx, key, change) },
			"pessimistic.Update, combine": func(ctx context.Context) { _, _ = combining.Update(ctx, key, change) },
			"optimistic.Update":           func(ctx context.Context) { _, _ = versions.Update(ctx, key, change) },
		} {
			ctx, root := own.Start(t.Context(), "root")
			var all sync.WaitGroup
			all.Go(func() {
				defer func() { rig.Equal(t, recover() != nil, how == "panic", "%s: recovered", name) }()
				call(ctx)
			})
			all.Wait()
			span, _, _ := strings.Cut(name, ",")
			calls := below(spans.Ended(), root.SpanContext(), span)
			if len(calls) != 1 || calls[0].Status().Code != codes.Error || value(calls[0], semconv.ErrorTypeKey) != how {
				t.Errorf("%s, %s: %v", name, how, calls)
			}
		}
	}
}

// silent is an error whose text is not there for a nil pointer.
type silent struct{ text string }

func (s *silent) Error() string { return s.text }

// TestAnErrorWithoutATextIsTold: a function returns a nil pointer as its error, whose text
// panics. The write for several callers asks for it in a goroutine that is nobody's.
func TestAnErrorWithoutATextIsTold(t *testing.T) {
	s, spans, _ := traced(t, true)
	key := s.put(t, "apple")
	r := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Combine: true}))(t)
	_, err := r.Update(t.Context(), key, func(context.Context, *product) error { return (*silent)(nil) })
	rig.Equal(t, err, error((*silent)(nil)), "the change's own error")
	for _, q := range spans.Ended() {
		if strings.HasPrefix(q.Name(), "pessimistic.Update") && q.Status().Code != codes.Error {
			t.Error(q.Status())
		}
	}
}

// TestATransactionIsACallOfNoTable looks at its span, and at those of its requests, which
// have tables.
func TestATransactionIsACallOfNoTable(t *testing.T) {
	s, spans, own := traced(t, false)
	key := s.put(t, "apple")
	r := rig.Must(optimistic.New(s.table(t), optimistic.Config{}))(t)
	ctx, root := own.Start(t.Context(), "root")
	overtaken := false
	rig.Is(t, txn.Config{TracerProvider: s.cfg.TracerProvider}.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		_, err := r.In(tx).Update(ctx, key, take)
		if !overtaken {
			overtaken = true
			rig.Must(r.Update(txn.Outside(t.Context()), key, take))(t)
		}
		return err
	}))
	root.End()
	for _, q := range spans.Ended() {
		if q.Parent().SpanID() != root.SpanContext().SpanID() {
			continue
		}
		if q.Name() != "txn.Run" || slices.ContainsFunc(q.Attributes(), func(a attribute.KeyValue) bool { return a.Key == semconv.DBCollectionNameKey }) {
			t.Errorf("%q with %v", q.Name(), q.Attributes())
		}
		if requests := below(spans.Ended(), q.SpanContext(), "UpdateItem"); len(requests) != 2 {
			t.Errorf("%d requests below it", len(requests))
		}
		if value(q, "dynahold.attempts") != "2" || value(q, semconv.AWSDynamoDBTableNamesKey) != `["`+s.Table+`"]` {
			t.Errorf("attempts and tables: %v", q.Attributes())
		}
		return
	}
	t.Error("no span of the transaction")
}

// TestACombinedWriteIsLinkedToItsCallers looks at a write for several callers, in whose
// goroutines none of the requests are sent.
func TestACombinedWriteIsLinkedToItsCallers(t *testing.T) {
	s, spans, own := traced(t, false)
	key := s.put(t, "apple")
	strategies := map[string]interface {
		Update(context.Context, repo.Key, func(context.Context, *product) error) (product, error)
	}{
		"pessimistic": rig.Must(pessimistic.New(s.table(t), pessimistic.Config{Combine: true}))(t),
		"optimistic":  rig.Must(optimistic.New(s.table(t), optimistic.Config{Combine: true}))(t),
	}
	for kind, r := range strategies {
		linked := func() bool {
			for _, q := range spans.Ended() {
				if strings.HasPrefix(q.Name(), kind+".Combine ") && len(q.Links()) > 1 {
					return true
				}
			}
			return false
		}
		until(t, linked, func() {
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					ctx, root := own.Start(t.Context(), "root")
					defer root.End()
					_, err := r.Update(ctx, key, take)
					rig.Is(t, err)
				})
			}
			all.Wait()
		})
		calls := map[trace.SpanID]sdktrace.ReadOnlySpan{}
		for _, q := range spans.Ended() {
			if strings.HasPrefix(q.Name(), kind+".Update ") {
				calls[q.SpanContext().SpanID()] = q
			}
		}
		for _, q := range spans.Ended() {
			if !strings.HasPrefix(q.Name(), kind+".Combine ") {
				continue
			}
			if calls[q.Parent().SpanID()] == nil || len(below(spans.Ended(), q.SpanContext(), "UpdateItem")) == 0 {
				t.Errorf("%s: parent %v, no request below", q.Name(), q.Parent())
			}
			for _, l := range q.Links() {
				call := calls[l.SpanContext.SpanID()]
				if call == nil {
					t.Errorf("%s: linked to no call", q.Name())
				} else if len(call.Links()) != 1 || call.Links()[0].SpanContext.SpanID() != q.SpanContext().SpanID() {
					t.Errorf("%s: its call is linked to %v", q.Name(), call.Links())
				}
			}
		}
	}
}

// TestRenewalsStandBelowTheCall looks at requests that a timer sends.
func TestRenewalsStandBelowTheCall(t *testing.T) {
	s, spans, _ := traced(t, false)
	key := s.put(t, "apple")
	l := rig.Must(lockedread.New(s.table(t), lockedread.Config{Lease: rig.Patience / 30, Renew: true}))(t)
	held := rig.Must(l.Acquire(t.Context(), key))(t)
	rig.Await(t, "a renewal below the call", func() bool {
		for _, q := range spans.Ended() {
			if strings.HasPrefix(q.Name(), "pessimistic.Acquire ") {
				return len(below(spans.Ended(), q.SpanContext(), "UpdateItem")) > 1
			}
		}
		return false
	})
	rig.Is(t, held.Release(t.Context()))
}

// TestJobsAreHandledInASpan looks at jobs from their handler: one that was enqueued in each
// way is linked to whoever enqueued it, at each attempt, and says how it has failed.
func TestJobsAreHandledInASpan(t *testing.T) {
	s, spans, own := traced(t, false)
	rows := s.rows(t)
	cfg := jobs.Config{Table: s.cfg, Limit: 1, Poll: 20 * time.Millisecond, Retry: jobs.Retry{Attempts: 2, Min: time.Millisecond, Max: time.Millisecond}}
	q := rig.Must(jobs.New[string](rows.Client, rows.Table, cfg))(t)
	rig.Is(t, q.EnsureTable(t.Context()))
	begun, root := own.Start(t.Context(), "root")
	rig.Must(q.Enqueue(begun, "mail", "at once"))(t)
	rig.Must(q.Enqueue(begun, "mail", "later", jobs.After(time.Millisecond)))(t)
	rig.Must(q.Enqueue(begun, "mail", "its own id", jobs.WithID("m-1")))(t)
	rig.Must(q.EnqueueMany(begun, "mail", []string{"one of many"}))(t)
	rig.Is(t, txn.Config{TracerProvider: s.cfg.TracerProvider, MeterProvider: s.cfg.MeterProvider}.Run(begun, func(ctx context.Context, tx *txn.Tx) error {
		_, err := q.In(tx).Enqueue(ctx, "mail", "with a change")
		return err
	}))
	rig.Must(q.Enqueue(t.Context(), "mail", "fails"))(t) // its span is a trace of its own
	root.End()
	ctx, cancel := context.WithCancel(t.Context())
	handlers := map[trace.SpanID]string{}
	rig.Is(t, q.Run(ctx, func(ctx context.Context, j *jobs.Job[string]) error {
		handlers[trace.SpanContextFromContext(ctx).SpanID()] = j.Value()
		if len(handlers) == 7 { // one is handled twice
			cancel()
		}
		if j.Value() == "fails" {
			return errors.New("no such address")
		}
		return nil
	}))
	by := map[trace.SpanID]sdktrace.ReadOnlySpan{}
	for _, span := range spans.Ended() {
		by[span.SpanContext().SpanID()] = span
	}
	for id, job := range handlers {
		span := by[id]
		if span == nil || !strings.HasPrefix(span.Name(), "job.Handle ") || span.SpanKind() != trace.SpanKindConsumer || len(span.Links()) != 1 {
			t.Fatalf("%s: %+v", job, span)
		}
		from := span.Links()[0].SpanContext
		if by[from.SpanID()] == nil || !from.IsRemote() || (from.TraceID() == root.SpanContext().TraceID()) == (job == "fails") {
			t.Errorf("%s is linked to %v", job, from)
		}
		way := map[string]string{"one of many": "job.EnqueueMany ", "with a change": "txn."}[job]
		if name := by[from.SpanID()].Name(); !strings.HasPrefix(name, cmp.Or(way, "job.Enqueue ")) {
			t.Errorf("%s comes from %s", job, name)
		}
		failed := job == "fails"
		ends := len(below(spans.Ended(), span.SpanContext(), "job.Done"))
		if failed {
			ends = len(below(spans.Ended(), span.SpanContext(), "job.Fail")) + len(below(spans.Ended(), span.SpanContext(), "job.Return")) // the last one ends with Run
		}
		if (span.Status().Code == codes.Error) != failed || (value(span, semconv.ErrorTypeKey) != "") != failed || ends != 1 {
			t.Errorf("%s: %v %v", job, span.Status(), span.Attributes())
		}
	}
}

// TestAnIDIsRepeatedInAnotherTrace: a job is enqueued once, whoever repeats it, and the
// first call is the one that it is linked to. Nothing is carried where no trace is sampled.
func TestAnIDIsRepeatedInAnotherTrace(t *testing.T) {
	s, _, own := traced(t, false)
	rows := s.rows(t)
	q := rig.Must(jobs.New[string](rows.Client, rows.Table, jobs.Config{Table: s.cfg}))(t)
	elsewhere := rig.Must(jobs.New[string](rows.Peer().Client, rows.Table, jobs.Config{Table: s.cfg}))(t)
	rig.Is(t, q.EnsureTable(t.Context()))
	first, root := own.Start(t.Context(), "root")
	id := rig.Must(q.Enqueue(first, "mail", "x"))(t)
	root.End()
	carried := func() (text string) {
		found := rig.Must(rows.Client.Query(t.Context(), &dynamodb.QueryInput{TableName: &rows.Table, KeyConditionExpression: aws.String("pk = :pk"),
			ExpressionAttributeValues: map[string]types.AttributeValue{":pk": &types.AttributeValueMemberS{Value: "JOBS#mail"}}}))(t)
		if len(found.Items) != 1 {
			t.Fatalf("%d jobs", len(found.Items))
		}
		if v, ok := found.Items[0]["trace"].(*types.AttributeValueMemberS); ok {
			text = v.Value
		}
		return text
	}
	was := carried()
	if !strings.HasPrefix(was, "00-"+root.SpanContext().TraceID().String()+"-") {
		t.Errorf("carried %q", was)
	}
	for _, by := range []*jobs.Queue[string]{q, elsewhere} {
		if again := rig.Must(by.Enqueue(t.Context(), "mail", "x", jobs.WithID(id)))(t); again != id {
			t.Errorf("%s was enqueued again as %s", id, again)
		}
		if now := carried(); now != was {
			t.Errorf("carried %q, then %q", was, now)
		}
	}
	_, err := elsewhere.Enqueue(t.Context(), "mail", "y", jobs.WithID(id))
	rig.Is(t, err, repo.ErrOutcomeUnknown)
	rig.Is(t, q.Cancel(t.Context(), "mail", id))
	quiet := s.cfg
	quiet.TracerProvider = sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	unsampled := rig.Must(jobs.New[string](rows.Client, rows.Table, jobs.Config{Table: quiet}))(t)
	rig.Must(unsampled.Enqueue(t.Context(), "mail", "x"))(t)
	if text := carried(); text != "" {
		t.Errorf("carried %q, and nothing is sampled", text)
	}
}

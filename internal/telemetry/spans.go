package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// unknownType is the error type of a call whose outcome nobody knows.
const unknownType = "outcome_unknown"

// Call is one call of a user, from its beginning to its verdict. The zero value tells
// nobody anything.
type Call struct {
	o               *Observer
	ctx             context.Context // with the span
	span            trace.Span      // nil: nobody listens
	kind, operation string
	began           time.Time
	spanOnly        bool // the call is measured by another
}

// Call begins a call. Its context has the span: all that is sent for the call is below it.
// about is the key, which the span says where a setting asks for it; nil: there is none.
func (o *Observer) Call(ctx context.Context, kind, operation string, about func() string) (context.Context, Call) {
	return o.call(ctx, kind, operation, about, trace.SpanKindInternal)
}

// Handling begins the handling of a job. from is what [Observer.Carry] has said of where it
// comes from: the span is linked to that.
func (o *Observer) Handling(ctx context.Context, kind, operation, from string, about func() string) (context.Context, Call) {
	var links []trace.SpanStartOption
	if origin, ok := carried(from); ok && o.Traces() {
		links = append(links, trace.WithLinks(trace.Link{SpanContext: origin}))
	}
	return o.call(ctx, kind, operation, about, trace.SpanKindConsumer, links...)
}

// Shared begins what is done for several calls together. It is not measured: they are.
func (o *Observer) Shared(ctx context.Context, kind, operation string, about func() string) (context.Context, Call) {
	ctx, c := o.call(ctx, kind, operation, about, trace.SpanKindInternal)
	c.spanOnly = true
	return ctx, c
}

func (o *Observer) call(ctx context.Context, kind, op string, about func() string, as trace.SpanKind, more ...trace.SpanStartOption) (context.Context, Call) {
	c := Call{o: o, ctx: ctx, kind: kind, operation: op}
	if o.Measures() {
		c.began = time.Now()
	}
	if o.Traces() {
		name := o.text(spanName{kind + ".", op})
		attributes := []attribute.KeyValue{dynamodb, kindOf.String(kind), operation.String(op), Collection.String(o.Table)}
		if o.Table == "" { // a transaction's
			attributes = attributes[:3]
		}
		c.ctx, c.span = o.tracer.Start(ctx, name, append(more, trace.WithSpanKind(as), trace.WithAttributes(attributes...))...)
		if o.Keys && about != nil {
			c.span.SetAttributes(key.String(about()))
		}
	}
	return c.ctx, c
}

// spanName is what a name of a span is made of, beside the table.
type spanName struct{ before, operation string }

// text is the name of a span, made once.
func (o *Observer) text(n spanName) string {
	if known, ok := o.known.Load(n); ok {
		return known.(string)
	}
	made, _ := o.known.LoadOrStore(n, strings.TrimSuffix(n.before+n.operation+" "+o.Table, " "))
	return made.(string)
}

// Delegated says that another call, below this one, is measured, and reports its outcome.
func (c *Call) Delegated() { c.spanOnly = true }

// Link says that the call has made the change of another one, whose context is ctx, and
// tells the span of that one too.
func (c *Call) Link(ctx context.Context) {
	if c.span == nil {
		return
	}
	other := trace.SpanFromContext(ctx)
	c.span.AddLink(trace.Link{SpanContext: other.SpanContext()})
	other.AddLink(trace.Link{SpanContext: c.span.SpanContext()})
}

// Changes notes how many changes the call has made.
func (c *Call) Changes(n int) {
	if c.span != nil {
		c.span.SetAttributes(changes.Int(n))
	}
}

// Attempts notes how often a transaction has run, and on which tables.
func (c *Call) Attempts(n int, tables func() []string) {
	if c.span != nil {
		c.span.SetAttributes(attempts.Int(n), tableNames.StringSlice(tables()))
	}
}

// End ends the call with the error that its user gets. It is for defer: a panic, which goes
// on as it was, is told as an error, and so is the end of the goroutine.
func (c *Call) End(err *error) {
	if c.o == nil {
		return
	}
	if p := recover(); p != nil {
		c.end(errPanic)
		panic(p)
	}
	if *err == nil && (c.span != nil || !c.began.IsZero()) && exits() {
		c.end(errExit)
		return
	}
	c.end(*err)
}

// exits reports whether it is runtime.Goexit that has called the function which asks: a
// function of the caller's has ended the goroutine, and no error says so.
func exits() bool {
	var by [1]uintptr
	frame, _ := runtime.CallersFrames(by[:runtime.Callers(3, by[:])]).Next()
	return frame.Function == "runtime.Goexit"
}

// said is what a span says of an error: its type, for its text may have a key or a value,
// unless these are asked for.
func (o *Observer) said(err error, typ string) string {
	if o.Keys {
		return fmt.Sprint(err) // which catches a text that panics
	}
	return typ
}

var (
	errPanic = NewError("panic", "a function of the caller's panicked")
	errExit  = NewError("goexit", "a function of the caller's has ended its goroutine")
)

func (c *Call) end(err error) {
	if c.span == nil && c.began.IsZero() && err == nil {
		return
	}
	typ := ""
	if err != nil {
		typ = c.o.ErrorType(err)
	}
	if !c.spanOnly && !c.began.IsZero() && c.o.Measures() {
		c.o.metrics.calls.Record(c.ctx, time.Since(c.began).Seconds(), c.o.with(set{kind: c.kind, operation: c.operation, errorType: typ}).record...)
	}
	if !c.spanOnly && typ == unknownType && !errors.As(err, new(*Returned)) { // of another call, which has told it
		c.o.unknownOutcome(c.ctx, c.kind, c.operation, err)
	}
	if c.span == nil {
		return
	}
	if err != nil {
		c.span.SetAttributes(errorType.String(typ))
		c.span.SetStatus(codes.Error, c.o.said(err, typ))
	}
	c.span.End()
}

// Request is one request to DynamoDB over all its attempts. The zero value tells nobody.
type Request struct {
	o     *Observer
	ctx   context.Context // with the span
	span  trace.Span      // nil: nobody listens
	op    string
	began time.Time
}

// Request begins a request. Its context has the span.
func (o *Observer) Request(ctx context.Context, op string) (context.Context, Request) {
	r := Request{o: o, ctx: ctx, op: op}
	if o.Measures() {
		r.began = time.Now()
	}
	if o.Traces() {
		r.ctx, r.span = o.tracer.Start(ctx, o.text(spanName{"", op}), trace.WithSpanKind(trace.SpanKindClient),
			trace.WithAttributes(dynamodb, dbOperation.String(op), Collection.String(o.Table), tableNames.StringSlice([]string{o.Table})))
	}
	return r.ctx, r
}

// Tables says which tables a transaction touches, of which ctx is that of the request.
func (o *Observer) Tables(ctx context.Context, names func() []string) {
	if o.Traces() {
		trace.SpanFromContext(ctx).SetAttributes(tableNames.StringSlice(names()))
	}
}

// Again tells that the nth attempt has failed, and that another one follows.
func (r *Request) Again(n int, pause time.Duration, err error) {
	if r.o == nil {
		return
	}
	if r.o.Measures() {
		r.o.metrics.retries.Add(r.ctx, 1, r.o.with(set{request: r.op, errorType: r.o.ErrorType(err)}).add...)
	}
	if r.span != nil {
		r.span.AddEvent(eventRetry, trace.WithAttributes(attempt.Int(n), delay.Float64(pause.Seconds()), errorType.String(r.o.ErrorType(err))))
	}
	r.o.retried(r.ctx, r.op, n, pause, err)
}

// End ends the request; a condition that failed is an answer, and no error. host is the
// endpoint's, with its port if it has one.
func (r *Request) End(host, where string, conditionFailed bool, err error) {
	if r.o == nil || r.span == nil && r.began.IsZero() {
		return
	}
	typ := ""
	if err != nil {
		typ = r.o.ErrorType(err)
	}
	if !r.began.IsZero() && r.o.Measures() {
		r.o.metrics.requests.Record(r.ctx, time.Since(r.began).Seconds(), r.o.with(set{request: r.op, errorType: typ}).record...)
	}
	if r.span == nil {
		return
	}
	attributes := make([]attribute.KeyValue, 0, 5) // all that follow
	if name, port, err := net.SplitHostPort(host); err == nil {
		n, _ := strconv.Atoi(port) // of a URL that was asked
		attributes = append(attributes, server.String(name), serverPort.Int(n))
	} else if host != "" {
		attributes = append(attributes, server.String(host))
	}
	if where != "" {
		attributes = append(attributes, region.String(where))
	}
	if conditionFailed {
		attributes = append(attributes, condition.Bool(true))
	}
	if err != nil {
		attributes = append(attributes, errorType.String(typ))
		r.span.SetStatus(codes.Error, r.o.said(err, typ))
	}
	r.span.SetAttributes(attributes...)
	r.span.End()
}

// Trace is the place of a call in its trace, for what goes on behind it.
type Trace = trace.SpanContext

// TraceOf is the place of a context; nil where nobody listens.
func (o *Observer) TraceOf(ctx context.Context) *Trace {
	if !o.Traces() {
		return nil
	}
	if t := trace.SpanContextFromContext(ctx); t.IsValid() {
		return &t
	}
	return nil
}

// Under puts what is sent with a context below a place.
func Under(ctx context.Context, t *Trace) context.Context {
	if t == nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, *t)
}

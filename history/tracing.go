package history

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/embedded"
	"go.opentelemetry.io/otel/trace/noop"
)

// Tracing is next, but that the record learns of calls from it; nil: there is no other.
func (r *Recorder) Tracing(next trace.TracerProvider) trace.TracerProvider {
	if next == nil {
		next = noop.NewTracerProvider()
	}
	return &provider{recorder: r, next: next}
}

type provider struct {
	embedded.TracerProvider
	recorder *Recorder
	next     trace.TracerProvider
}

func (p *provider) Tracer(name string, options ...trace.TracerOption) trace.Tracer {
	return &tracer{recorder: p.recorder, next: p.next.Tracer(name, options...)}
}

type tracer struct {
	embedded.Tracer
	recorder *Recorder
	next     trace.Tracer
}

// Start begins a span. That of a request belongs to the call around it.
func (t *tracer) Start(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	outer, _ := trace.SpanFromContext(ctx).(*span)
	ctx, inner := t.next.Start(ctx, name, options...)
	cfg := trace.NewSpanStartConfig(options...)
	s := &span{Span: inner}
	if cfg.SpanKind() == trace.SpanKindClient {
		if outer == nil {
			return ctx, inner
		}
		s.of = outer.of
	} else {
		s.of = &called{recorder: t.recorder, call: Call{Call: name, Began: time.Now()}}
		s.of.describe(name, cfg.Attributes())
		s.ends = true
	}
	return trace.ContextWithSpan(ctx, s), s
}

// span tells its call how it ends.
type span struct {
	trace.Span
	of   *called
	ends bool // the call ends with it
}

func (s *span) SetStatus(code codes.Code, text string) {
	if s.ends && code == codes.Error {
		s.of.fail()
	}
	s.Span.SetStatus(code, text)
}

func (s *span) SetAttributes(attributes ...attribute.KeyValue) {
	if s.ends {
		s.of.learn(attributes)
	}
	s.Span.SetAttributes(attributes...)
}

func (s *span) End(options ...trace.SpanEndOption) {
	if s.ends {
		s.of.end()
	}
	s.Span.End(options...)
}

// called is a call under way.
type called struct {
	recorder *Recorder
	mu       sync.Mutex
	call     Call // guarded by mu
	failed   bool // guarded by mu
	over     bool // guarded by mu
}

// describe takes the name of the call from its span, which ends with the table's.
func (c *called) describe(name string, attributes []attribute.KeyValue) {
	for _, a := range attributes {
		if a.Key == "db.collection.name" {
			c.call.Table = a.Value.AsString()
		}
	}
	c.call.Call = strings.TrimSuffix(name, " "+c.call.Table)
}

func (c *called) fail() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = true
}

func (c *called) learn(attributes []attribute.KeyValue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range attributes {
		if a.Key == "error.type" {
			c.call.Error = a.Value.AsString()
		}
	}
}

// wrote notes writes of one request, and what was answered.
func (c *called) wrote(answer string, writes []Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, w := range writes {
		if w.Answer = answer; len(c.call.Writes) < mostWrites && !c.over {
			c.call.Writes = append(c.call.Writes, w)
		}
	}
}

func (c *called) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || len(c.call.Writes) == 0 {
		c.over = true
		return
	}
	c.over = true
	c.call.Ended = time.Now()
	c.call.Verdict = verdict(c.failed, c.call.Error)
	c.recorder.add(c.call)
}

// verdict is what the caller was told: with most errors that nothing was written.
// What a panic has left is not said.
func verdict(failed bool, typ string) string {
	switch {
	case !failed, typ == "done", typ == "no_result":
		return Done
	case typ == "outcome_unknown", typ == "panic":
		return Unknown
	}
	return Refused
}

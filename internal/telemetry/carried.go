package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// traceparent is what W3C's Trace Context calls the place in a trace.
const traceparent = "traceparent"

// Carry is the place of a context in its trace, as a text that goes with work to whoever
// does it: a traceparent. "" where nobody listens, or the trace is not sampled.
func (o *Observer) Carry(ctx context.Context) string {
	t := o.TraceOf(ctx)
	if t == nil || !t.IsSampled() {
		return ""
	}
	said := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, said)
	return said[traceparent]
}

// carried reads such a text; false: it is none.
func carried(text string) (trace.SpanContext, bool) {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: text})
	t := trace.SpanContextFromContext(ctx)
	return t, t.IsValid()
}

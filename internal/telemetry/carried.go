package telemetry

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/otel/trace"
)

// Carry is the place of a context in its trace, as a text that goes with work to whoever
// does it: a traceparent of W3C's Trace Context. "" where nobody listens, or the trace is
// not sampled.
func (o *Observer) Carry(ctx context.Context) string {
	t := o.TraceOf(ctx)
	if t == nil || !t.IsSampled() {
		return ""
	}
	return "00-" + t.TraceID().String() + "-" + t.SpanID().String() + "-" + t.TraceFlags().String()
}

// carried reads such a text; false: it is none.
func carried(text string) (trace.SpanContext, bool) {
	parts := strings.Split(text, "-")
	if len(parts) != 4 || parts[0] != "00" {
		return trace.SpanContext{}, false
	}
	id, err := trace.TraceIDFromHex(parts[1])
	span, errSpan := trace.SpanIDFromHex(parts[2])
	flags, errFlags := hex.DecodeString(parts[3])
	if err != nil || errSpan != nil || errFlags != nil || len(flags) != 1 {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]), Remote: true}), true
}

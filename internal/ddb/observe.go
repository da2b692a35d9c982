package ddb

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
)

// Observer tells the outside what is sent. Every part of it is optional.
type Observer struct {
	Log      *slog.Logger
	tracer   trace.Tracer
	requests metric.Int64Counter
	retries  metric.Int64Counter
	waits    metric.Float64Histogram
	skips    metric.Int64Counter
}

const scope = "github.com/dynahold/dynahold"

// NewObserver makes an observer; nil arguments switch that part off.
func NewObserver(log *slog.Logger, meters metric.MeterProvider, tracers trace.TracerProvider) (*Observer, error) {
	o := &Observer{Log: log}
	if log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if tracers != nil {
		o.tracer = tracers.Tracer(scope)
	}
	if meters == nil {
		return o, nil
	}
	m := meters.Meter(scope)
	var err error
	if o.requests, err = m.Int64Counter("dynahold.requests", metric.WithDescription("requests sent to DynamoDB, by operation and table")); err != nil {
		return nil, err
	}
	if o.retries, err = m.Int64Counter("dynahold.retries", metric.WithDescription("attempts repeated after an error")); err != nil {
		return nil, err
	}
	if o.skips, err = m.Int64Counter("dynahold.skipped", metric.WithDescription("what a dispatcher left aside because it cannot be read or handled, by kind and table")); err != nil {
		return nil, err
	}
	o.waits, err = m.Float64Histogram("dynahold.wait", metric.WithUnit("s"), metric.WithDescription("time spent waiting for items held by others"))
	return o, err
}

func labels(op, table string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("operation", op), attribute.String("table", table))
}

func (o *Observer) start(ctx context.Context, op, table string) (context.Context, func(Outcome, error)) {
	if o.tracer == nil {
		return ctx, func(Outcome, error) {}
	}
	ctx, span := o.tracer.Start(ctx, "dynahold "+op, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("db.system", "dynamodb"), attribute.String("db.collection.name", table)))
	return ctx, func(out Outcome, err error) {
		span.SetAttributes(attribute.Bool("dynahold.condition_failed", out == Condition))
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

func (o *Observer) request(ctx context.Context, op, table string) {
	if o.requests != nil {
		o.requests.Add(ctx, 1, labels(op, table))
	}
}

func (o *Observer) retry(ctx context.Context, op, table string, n int, delay time.Duration, err error) {
	if o.retries != nil {
		o.retries.Add(ctx, 1, labels(op, table))
	}
	o.Log.LogAttrs(ctx, slog.LevelDebug, "dynahold: repeating a request", slog.String("operation", op),
		slog.String("table", table), slog.Int("attempt", n), slog.Duration("delay", delay), slog.Any("error", err))
}

// Waited records how long a caller waited for an item.
func (o *Observer) Waited(ctx context.Context, table string, d time.Duration) {
	if o.waits != nil {
		o.waits.Record(ctx, d.Seconds(), metric.WithAttributes(attribute.String("table", table)))
	}
}

// Skipped counts something that was left aside so that the rest can go on: a
// row that cannot be read, a handler that does not return.
func (o *Observer) Skipped(ctx context.Context, kind, table string) {
	if o.skips != nil {
		o.skips.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", kind), attribute.String("table", table)))
	}
}

package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A locked change of an item: without any listener, and with those of the SDK. What is off
// is what internal/suite/costs measures, too.
func BenchmarkLockedChange(b *testing.B) {
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	tracers := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
	unsampled := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	for _, c := range []struct {
		name    string
		meters  metric.MeterProvider
		tracers trace.TracerProvider
	}{
		{"no global provider", nil, nil},
		{"switched off", metricnoop.NewMeterProvider(), tracenoop.NewTracerProvider()},
		{"metrics", meters, tracenoop.NewTracerProvider()},
		{"metrics, no trace sampled", meters, unsampled},
		{"metrics, each trace", meters, tracers},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := rig.New(b)
			table := rig.Must(repo.NewTable[product](r.Client, r.Table, repo.TableConfig{MeterProvider: c.meters, TracerProvider: c.tracers}))(b)
			rig.Is(b, table.EnsureTable(b.Context()))
			rig.Must(rig.Must(nolock.New(table, nolock.Config{}))(b).Create(b.Context(), product{ID: "apple", At: 1}))(b)
			locked := rig.Must(pessimistic.New(table, pessimistic.Config{}))(b)
			b.ReportAllocs()
			for b.Loop() {
				rig.Must(locked.Update(b.Context(), repo.Key{Partition: "apple"}, take))(b)
			}
		})
	}
}

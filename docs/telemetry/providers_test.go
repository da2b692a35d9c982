package telemetry_test

import (
	"testing"

	"go.opentelemetry.io/otel"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// TestGlobalProvidersAreHonoured is the only test that installs them, for that is for
// ever: what was made before hears of it, and what is switched off does not.
func TestGlobalProvidersAreHonoured(t *testing.T) {
	s := newShop(t, repo.TableConfig{})
	key := s.put(t, "apple")
	before := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
	o := rig.Must(telemetry.New(telemetry.Options{}))(t)
	if o.Traces() || o.Measures() {
		t.Fatal("somebody is told before there is anybody: what costs nothing would cost something")
	}
	rig.Must(before.Update(t.Context(), key, take))(t)

	reader, spans := sdkmetric.NewManualReader(), tracetest.NewSpanRecorder()
	otel.SetMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)))
	told := func() int {
		all, _ := collected(t, reader)
		return len(all) + len(spans.Ended())
	}
	off := &shop{s.Rig, repo.TableConfig{MeterProvider: metricnoop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()}}
	rig.Must(rig.Must(pessimistic.New(off.table(t), pessimistic.Config{}))(t).Update(t.Context(), key, take))(t)
	rig.Equal(t, told(), 0, "switched off, were told")
	rig.Must(before.Update(t.Context(), key, take))(t)
	all, _ := collected(t, reader)
	if len(spans.Ended()) != 3 || all["dynahold.call.duration"].Name == "" { // the call and two requests
		t.Errorf("installed after the table was made: %d spans, metrics %v", len(spans.Ended()), all)
	}
	after := rig.Must(pessimistic.New(s.table(t), pessimistic.Config{}))(t)
	rig.Must(after.Update(t.Context(), key, take))(t)
	rig.Equal(t, len(spans.Ended()), 6, "installed before the table was made: spans")
}

package telemetry

import (
	"log/slog"
	"reflect"
	"runtime/debug"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
)

// Scope is the name of the instrumentation, and SchemaURL the version of the semantic
// conventions that it follows.
const (
	Scope     = "github.com/dynahold/dynahold"
	SchemaURL = "https://opentelemetry.io/schemas/1.43.0"
)

// Options say what is observed, and who is told.
type Options struct {
	Table   string
	Log     *slog.Logger         // nil: nobody
	Meters  metric.MeterProvider // nil: the global one
	Tracers trace.TracerProvider // nil: the global one
	Keys    bool                 // spans have the key
	// ErrorType names an error, in a few words that do not depend on the item. Never
	// nil where there are spans or metrics.
	ErrorType func(error) string
}

// Observer tells what happens to one table. A nil one tells nobody. It is safe for
// concurrent use.
type Observer struct {
	Options
	tracer  trace.Tracer // nil: none
	metrics *instruments // nil: none

	// The global providers as they were while nobody had installed any; nil if they are
	// not used, or were installed already.
	noTracers trace.TracerProvider
	noMeters  metric.MeterProvider

	known sync.Map // labels by their set, and texts by theirs
}

// New makes an observer.
func New(opt Options) (*Observer, error) {
	o := &Observer{Options: opt}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Tracers == nil {
		o.Tracers = otel.GetTracerProvider()
		if placeholder(o.Tracers) {
			o.noTracers = o.Tracers
		}
	}
	if o.Meters == nil {
		o.Meters = otel.GetMeterProvider()
		if placeholder(o.Meters) {
			o.noMeters = o.Meters
		}
	}
	if _, off := o.Tracers.(tracenoop.TracerProvider); !off {
		o.tracer = o.Tracers.Tracer(Scope, trace.WithInstrumentationVersion(Version()), trace.WithSchemaURL(SchemaURL))
	}
	if _, off := o.Meters.(metricnoop.MeterProvider); off {
		return o, nil
	}
	var err error
	o.metrics, err = newInstruments(o.Meters.Meter(Scope, metric.WithInstrumentationVersion(Version()), metric.WithSchemaURL(SchemaURL)))
	return o, err
}

// placeholder reports whether a global provider stands in for one that nobody has
// installed yet. It cannot be asked, but comes from a package of its own. If that is
// renamed some day, spans and metrics without a listener cost what they cost elsewhere.
func placeholder(provider any) bool {
	t := reflect.TypeOf(provider)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == "go.opentelemetry.io/otel/internal/global"
}

// Traces reports whether anybody listens to spans.
func (o *Observer) Traces() bool {
	return o != nil && o.tracer != nil && (o.noTracers == nil || otel.GetTracerProvider() != o.noTracers)
}

// Measures reports whether anybody listens to metrics.
func (o *Observer) Measures() bool {
	return o != nil && o.metrics != nil && (o.noMeters == nil || otel.GetMeterProvider() != o.noMeters)
}

// Version is that of the library in this program.
var Version = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Scope {
			return strings.Trim(m.Version, "()")
		}
	}
	return ""
})

// set are the attributes of a measurement beside the table. Those that are empty are left
// out, as is the table of what has none.
type set struct{ kind, operation, request, reason, state, errorType, resource string }

// labels are the attributes of a measurement, in the forms that instruments take: made
// once, for there are few of them.
type labels struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

func (o *Observer) with(s set) *labels {
	if known, ok := o.known.Load(s); ok {
		return known.(*labels)
	}
	var attributes []attribute.KeyValue
	if s.request != "" {
		attributes = append(attributes, dynamodb)
	}
	for _, a := range []attribute.KeyValue{Collection.String(o.Table), kindOf.String(s.kind), operation.String(s.operation), dbOperation.String(s.request), reason.String(s.reason), state.String(s.state), errorType.String(s.errorType), resource.String(s.resource)} {
		if a.Value.AsString() != "" {
			attributes = append(attributes, a)
		}
	}
	option := metric.WithAttributeSet(attribute.NewSet(attributes...))
	made, _ := o.known.LoadOrStore(s, &labels{[]metric.AddOption{option}, []metric.RecordOption{option}})
	return made.(*labels)
}

package txn

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

// told are whom the calls of a Config are told to.
type told struct {
	log     *slog.Logger
	meters  metric.MeterProvider
	tracers trace.TracerProvider
}

// observers has the observer of each, made once: a Config is a value, which has no place
// for it.
var observers sync.Map

func (c Config) observer() (*telemetry.Observer, error) {
	who := told{c.Logger, c.MeterProvider, c.TracerProvider}
	kept := reflect.ValueOf(who).Comparable() // else it is made each time
	if kept {
		if known, ok := observers.Load(who); ok {
			return known.(*telemetry.Observer), nil
		}
	}
	o, err := telemetry.New(telemetry.Options{Log: c.Logger, Meters: c.MeterProvider, Tracers: c.TracerProvider, ErrorType: link.ErrorType})
	if err != nil {
		return nil, fmt.Errorf("%w: MeterProvider: %w", repo.ErrConfig, err)
	}
	if kept {
		observers.Store(who, o)
	}
	return o, nil
}

// Package gauges measures the commands that one process carries out for others: what waits,
// for how long, and who leads. It is apart from package telemetry so that who delegates
// nothing compiles nothing of it.
//
// All gauges are looked at when a reader asks. Several clients of one table in a process,
// as those of several types of items, are one: a gauge knows only the last of two values.
package gauges

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/dynahold/dynahold/internal/telemetry"
)

// Gauges tell of the mail of one table. A nil one tells nobody.
type Gauges struct {
	o *telemetry.Observer
	*counts
}

// counts are what the gauges of a table show.
type counts struct {
	mu      sync.Mutex
	sent    map[int]time.Time // guarded by mu: mail without answers
	leading int               // guarded by mu
	next    int               // guarded by mu
}

// place is where values of one table go.
type place struct {
	meters metric.MeterProvider
	table  string
}

var known struct {
	mu  sync.Mutex
	all map[place]*counts // guarded by mu
}

// Of are the gauges of an observer's table.
func Of(o *telemetry.Observer) (*Gauges, error) {
	if o == nil {
		return nil, nil
	}
	if _, off := o.Meters.(noop.MeterProvider); off {
		return nil, nil
	}
	known.mu.Lock()
	defer known.mu.Unlock()
	at := place{o.Meters, o.Table}
	comparable := reflect.ValueOf(o.Meters).Comparable()
	if comparable && known.all[at] != nil {
		return &Gauges{o, known.all[at]}, nil
	}
	c := &counts{sent: map[int]time.Time{}}
	if err := c.register(o); err != nil {
		return nil, err
	}
	if comparable {
		if known.all == nil {
			known.all = map[place]*counts{}
		}
		known.all[at] = c
	}
	return &Gauges{o, c}, nil
}

// register has a reader look at the counts.
func (c *counts) register(o *telemetry.Observer) error {
	m := o.Meters.Meter(telemetry.Scope, metric.WithInstrumentationVersion(telemetry.Version()), metric.WithSchemaURL(telemetry.SchemaURL))
	waiting, err1 := m.Int64ObservableGauge("dynahold.mail.waiting", metric.WithUnit("{mail}"), metric.WithDescription("Mail that this process has sent, and that is not answered."))
	oldest, err2 := m.Float64ObservableGauge("dynahold.mail.oldest_age", metric.WithUnit("s"), metric.WithDescription("Age of the oldest of it."))
	leading, err3 := m.Int64ObservableGauge("dynahold.mail.leading", metric.WithUnit("{item}"), metric.WithDescription("Items whose commands this process carries out for all."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	table := metric.WithAttributeSet(attribute.NewSet(telemetry.Collection.String(o.Table)))
	_, err := m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		n, age, leads := c.now()
		to.ObserveInt64(waiting, int64(n), table)
		to.ObserveFloat64(oldest, age.Seconds(), table)
		to.ObserveInt64(leading, int64(leads), table)
		return nil
	}, waiting, oldest, leading)
	return err
}

func (c *counts) now() (waiting int, oldest time.Duration, leading int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, at := range c.sent {
		oldest = max(oldest, time.Since(at))
	}
	return len(c.sent), oldest, c.leading
}

// Sent tells of a mail, until end does of its answers.
func (g *Gauges) Sent(ctx context.Context) (end func()) {
	if g == nil || !g.o.Measures() {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	id, began := g.next, time.Now()
	g.sent[id] = began
	return func() {
		g.mu.Lock()
		delete(g.sent, id)
		g.mu.Unlock()
		g.o.Waited(ctx, telemetry.Delegate, telemetry.ToProcess, time.Since(began))
	}
}

// Leads tells of an item that this process leads, until end.
func (g *Gauges) Leads() (end func()) {
	if g == nil || !g.o.Measures() {
		return func() {}
	}
	g.add(1)
	return func() { g.add(-1) }
}

func (c *counts) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leading += n
}

package telemetry_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/semconv/v1.43.0/dbconv"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/ticket"
)

// described is a metric as the document and the program describe it.
type described struct{ unit, kind, attributes string }

// collected are the metrics of a reader, and which of them have a value.
func collected(t *testing.T, reader sdkmetric.Reader) (all map[string]metricdata.Metrics, scope metricdata.ScopeMetrics) {
	t.Helper()
	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		t.Fatal(err)
	}
	all = map[string]metricdata.Metrics{}
	for _, s := range data.ScopeMetrics {
		scope = s
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all, scope
}

// TestDocumentListsWhatIsRecorded compares the table of docs/telemetry.md with what a
// program records to which everything happens.
func TestDocumentListsWhatIsRecorded(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))
	open(t, repo.TableConfig{MeterProvider: meters, TracerProvider: noop.NewTracerProvider()}, func(metric string) bool {
		all, _ := collected(t, reader)
		_, ok := all[metric]
		return ok
	})
	all, scope := collected(t, reader)
	if scope.Scope.Name != "github.com/dynahold/dynahold" || scope.Scope.SchemaURL != semconv.SchemaURL {
		t.Errorf("scope %+v", scope.Scope)
	}
	recorded := map[string]described{}
	for name, m := range all {
		recorded[name] = describe(t, m)
	}
	documented := table(t, "metric")
	for name, want := range documented {
		if got, ok := recorded[name]; !ok {
			t.Errorf("%s is documented, and was not recorded", name)
		} else if want := (described{want[0], want[1], want[2]}); got != want {
			t.Errorf("%s was recorded as %+v, the document has %+v", name, got, want)
		}
	}
	for name, got := range recorded {
		if documented[name] == nil {
			t.Errorf("%s was recorded as %+v, and is not documented", name, got)
		}
	}
}

// TestWhoComesIsCountedOnce looks at the depth of a queue: whoever passes a dead process's
// ticket over looks twice, and came once, as whoever waits twice.
func TestWhoComesIsCountedOnce(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	var passed atomic.Int64
	cfg := ticket.Config{Table: repo.TableConfig{
		MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), TracerProvider: noop.NewTracerProvider(),
		Clock: func() time.Time { return time.Now().Add(time.Duration(passed.Load())) },
	}}
	r := rig.New(t)
	dead, alive := rig.Must(ticket.New(r.Client, r.Table, cfg))(t), rig.Must(ticket.New(r.Peer().Client, r.Table, cfg))(t)
	rig.Is(t, dead.EnsureTable(t.Context()))
	rig.Must(dead.Lock(t.Context(), "printer"))(t)
	r.Always(fault.DropRequest) // from now on it renews nothing
	passed.Store(int64(time.Hour))
	rig.Is(t, alive.Do(t.Context(), "printer", func(context.Context, *ticket.Turn) error { return nil }))
	few := cfg
	few.Wait.Attempts = 1
	turn := rig.Must(alive.Lock(t.Context(), "scanner"))(t)
	patient := rig.Must(rig.Must(ticket.New(r.Peer().Client, r.Table, few))(t).Join(t.Context(), "scanner"))(t)
	for range 2 { // it comes once, and waits twice
		_, err := patient.Wait(t.Context())
		rig.Is(t, err, repo.ErrLocked)
	}
	rig.Is(t, patient.Leave(t.Context()))
	rig.Is(t, turn.Done(t.Context()))
	all, _ := collected(t, reader)
	var came uint64
	for _, p := range all["dynahold.queue.depth"].Data.(metricdata.Histogram[int64]).DataPoints {
		came += p.Count
	}
	rig.Equal(t, came, 4, "came")
}

// TestAJobThatCannotBeReadIsNotHandled looks at how the handling of a job ends whose value is
// no value.
func TestAJobThatCannotBeReadIsNotHandled(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	cfg := jobs.Config{Retry: jobs.Retry{Attempts: 1}, Table: repo.TableConfig{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), TracerProvider: noop.NewTracerProvider()}}
	r := rig.New(t)
	texts, numbers := rig.Must(jobs.New[string](r.Client, r.Table, cfg))(t), rig.Must(jobs.New[int](r.Client, r.Table, cfg))(t)
	rig.Is(t, texts.EnsureTable(t.Context()))
	rig.Must(texts.Enqueue(t.Context(), "mail", "no number"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- numbers.Run(ctx, func(context.Context, *jobs.Job[int]) error { return nil })
	}()
	rig.Await(t, "the job is dead", func() bool { return rig.Must(texts.Resource(t.Context(), "mail"))(t).Dead == 1 })
	cancel()
	rig.Is(t, <-ended)
	all, _ := collected(t, reader)
	handled := 0
	for _, p := range all["dynahold.call.duration"].Data.(metricdata.Histogram[float64]).DataPoints {
		if operation, _ := p.Attributes.Value("dynahold.operation"); operation.AsString() != "Handle" {
			continue
		}
		handled++
		if _, failed := p.Attributes.Value(semconv.ErrorTypeKey); !failed {
			t.Errorf("the handling has ended well: %v", p.Attributes)
		}
	}
	rig.Equal(t, handled, 1, "ways in which jobs were handled")
}

// describe is what is seen of a metric; boundaries must fit.
func describe(t *testing.T, m metricdata.Metrics) described {
	d := described{unit: m.Unit}
	var sets []attribute.Set
	switch data := m.Data.(type) {
	case metricdata.Sum[int64]:
		d.kind = "counter"
		sets = points(data.DataPoints)
	case metricdata.Gauge[int64]:
		d.kind = "gauge"
		sets = points(data.DataPoints)
	case metricdata.Gauge[float64]:
		d.kind = "gauge"
		sets = points(data.DataPoints)
	case metricdata.Histogram[float64]:
		d.kind = "histogram"
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
			conventions := []float64{0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10} // of requests
			if p.Bounds[0] != 0.001 || p.Bounds[len(p.Bounds)-1] < 10 || strings.HasPrefix(m.Name, "db.") && !slices.Equal(p.Bounds, conventions) {
				t.Errorf("%s has the boundaries %v", m.Name, p.Bounds)
			}
		}
	case metricdata.Histogram[int64]:
		d.kind = "histogram"
		for _, p := range data.DataPoints {
			sets = append(sets, p.Attributes)
		}
	default:
		t.Errorf("%s is a %T", m.Name, m.Data)
	}
	var names []string
	for _, s := range sets {
		for _, a := range s.ToSlice() {
			if !slices.Contains(names, string(a.Key)) {
				names = append(names, string(a.Key))
			}
			for _, key := range []string{"apple", "pear", "plum", "printer", "mail", "nightly"} {
				if a.Key != "dynahold.resource" && strings.Contains(a.Value.String(), key) { // which is asked for
					t.Errorf("%s has a key: %v", m.Name, a)
				}
			}
		}
	}
	slices.Sort(names)
	d.attributes = strings.Join(names, ", ")
	return d
}

func points[N int64 | float64](all []metricdata.DataPoint[N]) (sets []attribute.Set) {
	for _, p := range all {
		sets = append(sets, p.Attributes)
	}
	return sets
}

// table reads the table of docs/telemetry.md whose first column has a heading: the other
// columns by the first, without the marks of code.
func table(t *testing.T, heading string) map[string][]string {
	t.Helper()
	document, err := os.ReadFile("../telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	_, rest, found := strings.Cut(string(document), "\n| "+heading+" |")
	if !found {
		t.Fatalf("no table with the heading %q", heading)
	}
	for i, line := range strings.Split(rest, "\n") {
		if i < 2 {
			continue
		}
		if !strings.HasPrefix(line, "|") {
			break
		}
		var cells []string
		for _, cell := range strings.Split(strings.Trim(line, "|"), "|") {
			cells = append(cells, strings.TrimSpace(regexp.MustCompile("`").ReplaceAllString(cell, "")))
		}
		rows[cells[0]] = cells[1:]
	}
	return rows
}

// TestSchemaIsTheConventions holds the names that the document has, which are those that are
// recorded, to those of the conventions. Names on spans are compared where spans are.
func TestSchemaIsTheConventions(t *testing.T) {
	rig.Equal(t, telemetry.SchemaURL, semconv.SchemaURL, "the conventions have")
	var theirs dbconv.ClientOperationDuration
	keys := fmt.Sprintf("%s, %s, %s, %s", semconv.DBCollectionNameKey, semconv.DBOperationNameKey, semconv.DBSystemNameKey, semconv.ErrorTypeKey)
	if ours := table(t, "metric")[theirs.Name()]; len(ours) == 0 || ours[0] != theirs.Unit() || ours[1] != "histogram" || ours[2] != keys {
		t.Errorf("%s: %v, the conventions have the unit %s and %s", theirs.Name(), ours, theirs.Unit(), keys)
	}
}

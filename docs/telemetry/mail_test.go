package telemetry_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

type basket struct {
	Shop    string `dynamodbav:"shop" repo:"pk"`
	ID      string `dynamodbav:"id" repo:"sk"`
	N       int    `dynamodbav:"n"`
	Version int    `dynamodbav:"version" repo:"version"`
}

var apples = repo.Key{Partition: "s", Sort: "apple"}

// commands are what one process has of a table of baskets.
func commands(t *testing.T, client *dynamodb.Client, table string, cfg repo.TableConfig) (*optimistic.Repository[basket], *delegate.Commands[basket], *delegate.Call[int, int]) {
	items := rig.Must(optimistic.New(rig.Must(repo.NewTable[basket](client, table, cfg))(t), optimistic.Config{}))(t)
	all := rig.Must(delegate.New(items, delegate.Config{}))(t)
	add := rig.Must(delegate.Command(all, "add/v1", func(_ context.Context, b *basket, n int) (int, error) { b.N += n; return b.N, nil }))(t)
	return items, all, add
}

// stand is a request that stands still until the test goes on.
type stand struct {
	once    sync.Once
	reached chan struct{}
	on      chan struct{}
}

func (s *stand) still() {
	s.once.Do(func() { close(s.reached) })
	<-s.on
}

// TestMailThatWaits looks at the gauges while a leader does not carry out what was sent to it:
// both are clients of one table in one process, and what one waits for is not covered by
// what the other does not.
func TestMailThatWaits(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	cfg := repo.TableConfig{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), TracerProvider: noop.NewTracerProvider()}
	r := rig.New(t)
	others, _, _ := commands(t, r.Client, r.Table, cfg)
	rig.Is(t, others.Table().EnsureTable(t.Context()))
	rig.Must(others.Create(t.Context(), basket{Shop: "s", ID: "apple"}))(t)
	gauges := func() (waiting, leading int64, age float64) {
		all, _ := collected(t, reader)
		whole := func(name string) int64 { return all[name].Data.(metricdata.Gauge[int64]).DataPoints[0].Value }
		return whole("dynahold.mail.waiting"), whole("dynahold.mail.leading"), all["dynahold.mail.oldest_age"].Data.(metricdata.Gauge[float64]).DataPoints[0].Value
	}
	if waiting, leading, age := gauges(); waiting != 0 || leading != 0 || age != 0 {
		t.Errorf("nobody has come: %d, %d, %v", waiting, leading, age)
	}

	looks := &stand{reached: make(chan struct{}), on: make(chan struct{})}
	client, copier := rig.Copied()
	alone := true
	copier.On(func(one *fault.Copy) (*http.Response, error) {
		switch {
		case one.Op == "UpdateItem" && alone:
			alone = false // another one writes first: so it is to lead
			rig.Must(others.Update(t.Context(), apples, func(_ context.Context, b *basket) error { b.N++; return nil }))(t)
		case one.Op == "Query":
			looks.still()
		}
		return nil, nil
	})
	_, leads, first := commands(t, client, r.Table, cfg)
	rig.Must(first.Do(t.Context(), apples, 1))(t)
	<-looks.reached
	answers := &stand{reached: make(chan struct{}), on: looks.on}
	slow, holder := rig.Copied()
	sent := false
	holder.On(func(one *fault.Copy) (*http.Response, error) {
		sent = sent || one.Op == "UpdateItem" && strings.Contains(string(one.Body), "mailItem")
		if sent && one.Op == "GetItem" {
			answers.still()
		}
		return nil, nil
	})
	_, sends, second := commands(t, slow, r.Table, cfg)
	told := make(chan error)
	go func() { _, err := second.Do(t.Context(), apples, 1); told <- err }()
	<-answers.reached
	waiting, leading, age := gauges()
	if waiting != 1 || leading != 1 || age <= 0 {
		t.Errorf("one waits: %d for %vs, %d leads", waiting, age, leading)
	}
	if _, _, later := gauges(); later <= age {
		t.Errorf("it waits for %v s, and for %v s later", age, later)
	}
	close(looks.on)
	rig.Is(t, <-told)
	if waiting, _, age := gauges(); waiting != 0 || age != 0 {
		t.Errorf("all are answered: %d, for %v s", waiting, age)
	}
	rig.Is(t, leads.Close(t.Context()))
	rig.Is(t, sends.Close(t.Context()))
	if _, leading, _ := gauges(); leading != 0 {
		t.Errorf("all are closed, and %d lead", leading)
	}
	all, _ := collected(t, reader)
	waits := all["dynahold.wait.duration"].Data.(metricdata.Histogram[float64]).DataPoints
	if kind, _ := waits[0].Attributes.Value("dynahold.kind"); len(waits) != 1 || waits[0].Count != 1 || kind.AsString() != "delegate" {
		t.Errorf("waited: %+v", waits)
	}
}

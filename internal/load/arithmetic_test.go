package load

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"
)

func TestJain(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		want   float64
	}{
		{[]float64{5, 5, 5, 5}, 1},
		{[]float64{1, 0, 0, 0}, 0.25},
		{[]float64{1, 1, 0, 0}, 0.5},
		{[]float64{1, 2, 3}, 36.0 / 42},
		{[]float64{7}, 1},
		{[]float64{0, 0}, 1},
		{nil, 1},
	} {
		if got := jain(c.shares); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("jain(%v) = %v, want %v", c.shares, got, c.want)
		}
	}
}

func TestSharesAreThoseOfProcesses(t *testing.T) {
	for _, c := range []struct {
		workload Workload
		want     []float64
		turns    float64
	}{
		{Workload{Processes: 2, Workers: 2}, []float64{3, 7}, 2},
		{Workload{Processes: 1, Workers: 4}, []float64{1, 2, 3, 4}, 1},
		{Workload{Processes: 4, Workers: 1}, []float64{1, 2, 3, 4}, 1},
		{Workload{Processes: 1, Workers: 1}, []float64{1}, 1},
	} {
		crew := &crew{workload: c.workload}
		for i := range c.workload.Processes * c.workload.Workers {
			w := newWorker(crew, i, nil, nil)
			w.measured, w.turns = i+1, 1
			crew.workers = append(crew.workers, w)
		}
		if got := crew.shares(); !slices.Equal(got, c.want) || crew.turns() != c.turns {
			t.Errorf("%+v: %v, %v turns; want %v, %v", c.workload, got, crew.turns(), c.want, c.turns)
		}
	}
}

func TestPercentile(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1))
	}
	for _, c := range []struct {
		values []time.Duration
		p      float64
		want   time.Duration
	}{
		{hundred, 0.5, 50},
		{hundred, 0.99, 99},
		{hundred[:1], 0.99, 1},
		{hundred[:2], 0.5, 1},
		{nil, 0.5, 0},
	} {
		if got := percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %v of %d values is %v, want %v", c.p, len(c.values), got, c.want)
		}
	}
}

func TestLatencyHasItsPercentiles(t *testing.T) {
	for name, c := range map[string]struct {
		latency Latency
		stalled float64 // share of requests that take a second or more
		most    float64 // by how much that may be off
	}{
		"even":       {Latency{Median: 4 * time.Millisecond, P99: 10 * time.Millisecond}, 0, 0},
		"log-normal": {Latency{Median: 4 * time.Millisecond, P99: 50 * time.Millisecond}, 0, 0.0001},
		"Pareto":     {Latency{Median: 4 * time.Millisecond, P99: 50 * time.Millisecond, Pareto: true}, 0.0001, 0.0001},
		"stalls":     {Latency{Median: 4 * time.Millisecond, P99: 10 * time.Millisecond, Stall: time.Second}, 0.001, 0.0004},
	} {
		d := newDelays(c.latency, 1, 0)
		below50, below99, stalled := 0, 0, 0
		const n = 100_000
		for range n {
			x := d.next()
			if x < c.latency.Median {
				below50++
			}
			if x < c.latency.P99 {
				below99++
			}
			if x >= time.Second {
				stalled++
			}
		}
		if math.Abs(float64(below50)/n-0.5) > 0.01 || math.Abs(float64(below99)/n-0.99) > 0.002 || math.Abs(float64(stalled)/n-c.stalled) > c.most {
			t.Errorf("%s: %d and %d of %d below, %d stalled", name, below50, below99, n, stalled)
		}
	}
}

func TestWeight(t *testing.T) {
	for wire, want := range map[string]int{
		`{"id":{"S":"abc"}}`:                 5,
		`{"n":{"N":"12345"}}`:                5,
		`{"b":{"B":"AAAA"}}`:                 4,
		`{"t":{"BOOL":true}}`:                2,
		`{"t":{"NULL":true}}`:                2,
		`{"l":{"L":[{"S":"ab"},{"N":"1"}]}}`: 1 + 3 + 1 + 2 + 1 + 2,
		`{"m":{"M":{"key":{"S":"ab"}}}}`:     1 + 3 + 1 + 3 + 2,
		`{"s":{"SS":["ab","c"]}}`:            4,
		`{"s":{"NS":["12","3"]}}`:            1 + 3 + 2,
		`{"s":{"BS":["AAAA","AAA="]}}`:       1 + 3 + 2,
		`{"s":{"S":""}}`:                     1,
	} {
		var item map[string]value
		if err := json.Unmarshal([]byte(wire), &item); err != nil {
			t.Fatal(err)
		}
		if got := weight(item); got != want {
			t.Errorf("%s weighs %d, want %d", wire, got, want)
		}
	}
}

func TestConsumed(t *testing.T) {
	for body, want := range map[string]float64{
		`{}`: 0,
		`{"ConsumedCapacity":{"TableName":"t","CapacityUnits":2.5}}`:                                2.5,
		`{"ConsumedCapacity":{"CapacityUnits":1},"Attributes":{"padding":{"S":"xxx"}}}`:             1,
		`{"Responses":{},"ConsumedCapacity":[{"CapacityUnits":1},{"CapacityUnits":2}]}`:             3,
		`{"Item":{"text":{"S":"\"ConsumedCapacity\":9"}},"ConsumedCapacity":{"CapacityUnits":4.0}}`: 4,
		`{"ConsumedCapacity":`: 0,
	} {
		if got := consumed([]byte(body)); got != want {
			t.Errorf("%s: %v units, want %v", body, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	tally := newTally(3000)
	const cancelled = `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"X"}]}`
	for _, c := range []struct {
		operation, body string
		units           float64
		wasted          bool
	}{
		{"UpdateItem", `{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}`, 3, true},
		{"UpdateItem", `{"__type":"ConditionalCheckFailedException","Item":{"id":{"S":"a"}}}`, 1, true},
		{transactWrite, cancelled, 12, true},
		{"TransactGetItems", cancelled, 4, false},
		{transactWrite, `{"__type":"TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"ThrottlingError"}]}`, 0, false},
		{transactWrite, `{"__type":"TransactionCanceledException","CancellationReasons":[{"Code":"TransactionConflict"},{"Code":"ThrottlingError"}]}`, 12, true},
		{"UpdateItem", `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`, 0, false},
		{"UpdateItem", `no answer of an engine`, 0, false},
	} {
		if units, wasted := tally.weigh(c.operation, 400, []byte(c.body)); units != c.units || wasted != c.wasted {
			t.Errorf("%s, %s: %v, %v", c.operation, c.body, units, wasted)
		}
	}
}

func TestSettings(t *testing.T) {
	good, err := Workload{}.withDefaults()
	if err != nil || good.Processes != 1 || good.Workers != 1 || good.Items != 1 || good.Size != 1024 || good.Span != 2*time.Second || good.Warmup != 400*time.Millisecond || good.Latency.P99 != 10*time.Millisecond {
		t.Errorf("%+v, %v", good, err)
	}
	for name, bad := range map[string]Workload{
		"negative workers": {Workers: -1},
		"negative span":    {Span: -1},
		"too large":        {Size: 400 << 10},
		"no skew":          {Zipf: 0.9},
		"no median":        {Latency: Latency{P99: 1}},
		"too few items":    {Touches: 2},
		"reversed latency": {Latency: Latency{Median: 2, P99: 1}},
	} {
		if _, err := bad.withDefaults(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

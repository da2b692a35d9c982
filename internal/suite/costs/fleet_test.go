package costs_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// fleet is a table of jobs and the processes that work on it, in virtual time on the
// real engine, over a network with the conflicts of Amazon's service.
type fleet struct {
	*billed
	t         *testing.T
	table     string
	sent      atomic.Int64 // requests
	refused   *atomic.Int64
	setup     *dynamodb.Client // costs nothing, not even time
	processes int
	later     int // jobs of each resource that wait for their time
}

// trip is how long a request takes.
const trip = 4 * time.Millisecond

// inFleet runs a part of a benchmark once, however often it is asked to: the run has a
// size of its own.
func inFleet(b *testing.B, name string, run func(f *fleet, report func(float64, string))) {
	inWorld(b, name, nil, run)
}

// inEveryWorld runs it as well where latency is uneven: with the median and the 99th
// percentile of the bench's worlds. Each run of -count draws by another seed.
func inEveryWorld(b *testing.B, name string, run func(f *fleet, report func(float64, string))) {
	tail := load.Latency{Median: trip, P99: 50 * time.Millisecond}
	pareto, stalls := tail, load.Latency{Median: trip, P99: 10 * time.Millisecond, Stall: time.Second}
	pareto.Pareto = true
	inFleet(b, name, run)
	inWorld(b, name+", log-normal", &tail, run)
	inWorld(b, name+", Pareto", &pareto, run)
	inWorld(b, name+", stalls", &stalls, run)
}

// inWorld runs it with latencies that are drawn; nil: each request takes a trip.
func inWorld(b *testing.B, name string, drawn *load.Latency, run func(f *fleet, report func(float64, string))) {
	var seed uint64
	b.Run(name, func(b *testing.B) {
		var delay func() time.Duration
		if seed++; drawn != nil {
			delay = drawn.Draws(seed)
		}
		table, client := "jobs-"+rand.Text(), rig.Client()
		figures := map[string]float64{}
		test := testing.InternalTest{Name: name, F: func(t *testing.T) {
			rig.Is(t, rig.Must(jobs.New[int](client, table, jobs.Config{}))(t).EnsureTable(t.Context()))
			rig.InVirtualTime(t, 32, func(t *testing.T, network fault.Doer) {
				f := &fleet{t: t, table: table}
				net := &rig.Conflicts{Latency: trip, Delay: delay, Next: rig.Aliased(table, network)}
				net.Saw = func(string, []byte) { f.sent.Add(1) }
				f.billed, f.refused = &billed{Client: net.Client()}, &net.Refused
				f.setup = rig.Client(rig.Over(network))
				run(f, func(n float64, unit string) { figures[unit] = n })
			})
			_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &table})
			rig.Is(t, err)
		}}
		// Virtual time wants a test.
		if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}) {
			b.Fail()
		}
		b.ReportMetric(0, "ns/op")
		for unit, n := range figures {
			b.ReportMetric(n, unit)
		}
	})
}

// process is a semaphore as a process of its own has it: its dispatchers hear nothing
// of what others enqueue, for it knows the table by a name of its own.
func (f *fleet) process(cfg jobs.Config) *jobs.Queue[int] {
	f.processes++
	return rig.Must(jobs.New[int](f.billed, rig.Alias(f.table, f.processes), cfg))(f.t)
}

// attrs is an item.
type attrs = map[string]types.AttributeValue

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// backlog puts jobs in line, past the semaphore: an Enqueue for each would take long.
func (f *fleet) backlog(resource string, jobs, limit int) {
	f.put(resource, jobs, attrs{"queued": num(int64(jobs)), "later": num(int64(f.later)), "running": num(0), "limit": num(int64(limit)), "limitSet": &types.AttributeValueMemberBOOL{Value: true}},
		func(int) attrs { return attrs{"state": str("queued"), "attempts": num(0)} })
}

// put puts rows in line, and that of their resource.
func (f *fleet) put(resource string, jobs int, of attrs, row func(i int) attrs) {
	var batch []types.WriteRequest
	send := func() {
		rig.Must(f.setup.BatchWriteItem(f.t.Context(), &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{f.table: batch}}))(f.t)
		batch = nil
	}
	for i := range jobs {
		item, place := row(i), fmt.Sprintf("%015x-AAAAAAAAAAAAA", i)
		item["pk"], item["sk"], item["id"], item["job"] = str("JOBS#"+resource), str(place), str(place), str(strconv.Itoa(i))
		if batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}}); len(batch) == 25 {
			send()
		}
	}
	of["pk"], of["sk"] = str("RESOURCE#"+shardOf(resource)), str(resource)
	batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: of}})
	send()
}

// begin forgets what was counted.
func (f *fleet) begin() {
	f.sent.Store(0)
	f.refused.Store(0)
	f.reads.Store(0)
	f.writes.Store(0)
}

// per reports what was counted, for each of n.
func (f *fleet) per(n float64, unit string, report func(float64, string)) {
	report(float64(f.sent.Load())/n, "requests/"+unit)
	report(float64(f.writes.Load())/10/n, "WU/"+unit)
	report(float64(f.reads.Load())/10/n, "RU/"+unit)
	report(float64(f.refused.Load())/n, "conflicts/"+unit)
}

// percentile of some durations, in milliseconds.
func percentile(all []time.Duration, percent int) float64 {
	slices.Sort(all)
	return float64(all[min(len(all)*percent/100, len(all)-1)].Microseconds()) / 1000
}

package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/semaphore"
)

func TestMain(m *testing.M) { rig.Main(m) }

type sem = semaphore.Semaphore

// bench is a semaphore's table.
type bench struct{ *rig.Rig }

func newBench(t testing.TB) bench {
	t.Helper()
	b := bench{rig.New(t)}
	rig.Is(t, b.open(t, semaphore.Config{}).EnsureTable(t.Context()))
	b.Count.Reset()
	return b
}

func (b bench) open(t testing.TB, cfg semaphore.Config) *sem {
	t.Helper()
	return rig.Must(semaphore.New(b.Client, b.Table, cfg))(t)
}

// jobs opens the jobs beside the permits.
func (b bench) jobs(t testing.TB) *jobs.Queue[int] {
	t.Helper()
	q := rig.Must(jobs.New[int](b.Client, b.Table, jobs.Config{}))(t)
	t.Cleanup(func() { _ = q.Close(context.Background()) })
	return q
}

// enqueue queues a job of the printer.
func enqueue(t testing.TB, p *process) {
	t.Helper()
	rig.Must(p.jobs(t).Enqueue(t.Context(), "printer", 1))(t)
}

// short is a semaphore whose leases end soon, but last until a starved process
// renews them.
func (b bench) short(t testing.TB) *sem {
	t.Helper()
	return b.open(t, semaphore.Config{Lease: 3 * time.Second, ClockSkew: -1})
}

// audit fails the test unless as many run as permits are held.
func (b bench) audit(t testing.TB) {
	t.Helper()
	for tally, err := range b.jobs(t).Audit(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if !tally.OK() {
			t.Errorf("counters: %v", tally)
		}
	}
}

func wantRunning(t testing.TB, s *sem, name string, running int) {
	t.Helper()
	r, err := s.Resource(context.Background(), name)
	rig.Is(t, err)
	if r.Running != running || r.Queued != 0 {
		t.Errorf("%q: %d run and %d are queued, want %d and none", name, r.Running, r.Queued, running)
	}
}

// editResource changes a resource's row as somebody would by hand.
func editResource(t *testing.T, b bench, edit func(map[string]types.AttributeValue)) map[string]types.AttributeValue {
	t.Helper()
	out := rig.Must(b.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.Table}))(t)
	if len(out.Items) != 1 {
		t.Fatalf("%d rows, want one", len(out.Items))
	}
	edit(out.Items[0])
	rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: out.Items[0]}))(t)
	return map[string]types.AttributeValue{"pk": out.Items[0]["pk"], "sk": out.Items[0]["sk"]}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

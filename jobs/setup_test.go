package jobs_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

func TestMain(m *testing.M) { rig.MainOr(m, tickUntilKilled) }

// deploy is what travels with the jobs of these tests.
type deploy struct {
	Version string `json:"version"`
	N       int    `json:"n"`
}

type queue = jobs.Queue[deploy]

// both are the jobs and the permits of one table.
type both = fixture.Work[deploy]

// bench is a table of jobs.
type bench struct{ *rig.Rig }

func newBench(t testing.TB) bench {
	t.Helper()
	b := bench{rig.New(t)}
	rig.Is(t, b.open(t, jobs.Config{}).EnsureTable(t.Context()))
	b.Count.Reset()
	return b
}

func (b bench) open(t testing.TB, cfg jobs.Config) *queue {
	t.Helper()
	return rig.Must(jobs.New[deploy](b.Client, b.Table, cfg))(t)
}

// both opens the permits beside the jobs.
func (b bench) both(t testing.TB, cfg jobs.Config) both {
	t.Helper()
	return fixture.OpenWork[deploy](t, b.Client, b.Table, cfg)
}

// short is a queue whose leases end soon, but last until a starved process
// renews them.
func (b bench) short(t testing.TB) *queue {
	t.Helper()
	return b.open(t, jobs.Config{Lease: 3 * time.Second, ClockSkew: -1, Retry: jobs.Retry{Min: time.Millisecond, Max: 2 * time.Millisecond}})
}

// audit fails the test unless every counter is that of its rows.
func audit(t testing.TB, q interface {
	Audit(ctx context.Context) iter.Seq2[jobs.Tally, error]
}) {
	t.Helper()
	for tally, err := range q.Audit(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if !tally.OK() {
			t.Errorf("counters: %v", tally)
		}
	}
}

type enqueuer[J any] interface {
	Enqueue(ctx context.Context, resource string, job J, options ...jobs.Option) (string, error)
}

// enqueue enqueues jobs with the numbers from 0 to n-1, in that order.
func enqueue(t testing.TB, q interface {
	EnqueueMany(ctx context.Context, resource string, all []deploy, options ...jobs.Option) ([]string, error)
}, resource string, n int) {
	t.Helper()
	var all []deploy
	for i := range n {
		all = append(all, deploy{"v", i})
	}
	rig.Must(q.EnqueueMany(t.Context(), resource, all))(t)
}

// put enqueues a job and returns its id.
func put[J any](t testing.TB, q enqueuer[J], resource string, job J, options ...jobs.Option) string {
	t.Helper()
	return rig.Must(q.Enqueue(t.Context(), resource, job, options...))(t)
}

// refuse fails the test unless an Enqueue ends with an error.
func refuse[J any](t testing.TB, q enqueuer[J], want error, resource string, job J) {
	t.Helper()
	_, err := q.Enqueue(t.Context(), resource, job)
	rig.Is(t, err, want)
}

func wantResource(t testing.TB, q interface {
	Resource(ctx context.Context, resource string) (jobs.Resource, error)
}, name string, queued, running, dead int) {
	t.Helper()
	r, err := q.Resource(context.Background(), name)
	rig.Is(t, err)
	if r.Queued != queued || r.Running != running || r.Dead != dead {
		t.Errorf("%q: %d queued, %d running, %d dead; want %d, %d, %d", name, r.Queued, r.Running, r.Dead, queued, running, dead)
	}
}

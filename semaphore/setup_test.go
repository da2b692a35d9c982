package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

func TestMain(m *testing.M) { rig.Main(m) }

// deploy is what travels with the jobs of these tests.
type deploy struct {
	Version string `json:"version"`
	N       int    `json:"n"`
}

type sem = semaphore.Semaphore[deploy]

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
	return rig.Must(semaphore.New[deploy](b.Client, b.Table, cfg))(t)
}

// short is a semaphore whose leases end soon, but last until a starved process
// renews them.
func (b bench) short(t testing.TB) *sem {
	t.Helper()
	return b.open(t, semaphore.Config{Lease: 3 * time.Second, ClockSkew: -1, Retry: semaphore.Retry{Min: time.Millisecond, Max: 2 * time.Millisecond}})
}

// audit fails the test unless every counter is that of its rows.
func audit(t testing.TB, s *sem) {
	t.Helper()
	for tally, err := range s.Audit(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if !tally.OK() {
			t.Errorf("counters: %v", tally)
		}
	}
}

func enqueue(t testing.TB, s *sem, resource string, n int) {
	t.Helper()
	for i := range n {
		put(t, s, resource, deploy{"v", i})
	}
}

// put enqueues a job and returns its id.
func put[J any](t testing.TB, s *semaphore.Semaphore[J], resource string, job J, options ...semaphore.EnqueueOption) string {
	t.Helper()
	return rig.Must(s.Enqueue(t.Context(), resource, job, options...))(t)
}

// refuse fails the test unless an Enqueue ends with an error.
func refuse[J any](t testing.TB, s *semaphore.Semaphore[J], want error, resource string, job J) {
	t.Helper()
	_, err := s.Enqueue(t.Context(), resource, job)
	rig.Is(t, err, want)
}

func wantResource(t testing.TB, s *sem, name string, queued, running, dead int) {
	t.Helper()
	r, err := s.Resource(context.Background(), name)
	rig.Is(t, err)
	if r.Queued != queued || r.Running != running || r.Dead != dead {
		t.Errorf("%q: %d queued, %d running, %d dead; want %d, %d, %d", name, r.Queued, r.Running, r.Dead, queued, running, dead)
	}
}

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// floor is what several dispatchers work on: it knows who is inside, and which
// jobs were done.
type floor struct {
	mu     sync.Mutex
	inside map[string]int
	limit  map[string]int
	most   map[string]int
	done   map[string]int // by resource and number
	broken []string
}

func newFloor(limits map[string]int) *floor {
	return &floor{inside: map[string]int{}, limit: limits, most: map[string]int{}, done: map[string]int{}}
}

func (f *floor) enter(resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside[resource]++
	f.most[resource] = max(f.most[resource], f.inside[resource])
	if f.inside[resource] > f.limit[resource] {
		f.broken = append(f.broken, fmt.Sprintf("%d at once on %s, its limit is %d", f.inside[resource], resource, f.limit[resource]))
	}
}

func (f *floor) leave(resource, job string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inside[resource]--
	if job != "" {
		f.done[job]++
	}
}

func TestS5_4_SeveralDispatchersUnderFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	clean := rig.Must(jobs.New[deploy](rig.Client(), b.Table, jobs.Config{}))(t)
	limits := map[string]int{"a": 1, "b": 1, "c": 2, "d": 3, "e": 1}
	const each = 12
	for name, limit := range limits {
		rig.Is(t, clean.SetLimit(t.Context(), name, limit))
		enqueue(t, clean, name, each)
	}
	f := newFloor(limits)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var all sync.WaitGroup
	var seed = rand.Uint64()
	t.Logf("seed %d", seed)
	for d := range uint64(3) {
		client, _ := rig.Faulty(seed+d, 0.15, fault.DropRequest, fault.LoseResponse, fault.CutResponse, fault.LateDuplicate, fault.Delay,
			fault.Truncate, fault.Error500, fault.Error500After, fault.Throttle, fault.TransactionConflict, fault.Refuse)
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Lease: 3 * time.Second, Workers: 4,
			Retry: jobs.Retry{Attempts: 1000, Min: time.Millisecond, Max: 20 * time.Millisecond}, Wait: repo.Wait{Max: 50 * time.Millisecond}}))(t)
		all.Go(func() {
			rig.Is(t, s.Run(ctx, func(held context.Context, j *jobs.Job[deploy]) error {
				f.enter(j.Resource())
				n := rand.IntN(6)
				if n == 0 {
					f.leave(j.Resource(), "")
					return errors.New("unlucky")
				}
				if n == 1 {
					f.leave(j.Resource(), "")
					panic("very unlucky")
				}
				f.leave(j.Resource(), fmt.Sprint(j.Resource(), j.Value().N))
				return nil
			}))
		})
	}
	for left := 1; left > 0 && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		left = 0
		for name := range limits {
			r, err := clean.Resource(t.Context(), name)
			rig.Is(t, err)
			left += r.Queued + r.Running
		}
	}
	cancel()
	all.Wait()
	for _, broken := range f.broken {
		t.Error(broken)
	}
	if len(f.done) != each*len(limits) {
		t.Errorf("%d different jobs done, want %d", len(f.done), each*len(limits))
	}
	audit(t, clean)
	for name := range limits {
		wantResource(t, clean, name, 0, 0, 0)
	}
	t.Logf("most at once: %v", f.most)
}

func TestNoResourceStarves(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Workers: 2, Wait: repo.Wait{Max: 20 * time.Millisecond}})
	enqueue(t, s, "busy", 60)
	for i := range 10 {
		enqueue(t, s, fmt.Sprintf("quiet-%d", i), 1)
	}
	rig.Is(t, s.SetLimit(t.Context(), "busy", 2))
	ctx, cancel := context.WithCancel(t.Context())
	var order []string
	var mu sync.Mutex
	rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
		mu.Lock()
		defer mu.Unlock()
		if order = append(order, j.Resource()); len(order) == 70 {
			cancel()
		}
		return nil
	}))
	last := 0
	for i, name := range order {
		if name != "busy" {
			last = i
		}
	}
	if last > 40 { // each round gives every resource a turn; without turns it would be about 60
		t.Errorf("the last quiet resource came as number %d of %d: %v", last, len(order), order)
	}
}

func TestAHandlerThatOutlivesItsLease(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dying, s := bench{b.Peer()}, b.short(t)
	enqueue(t, s, "staging", 1)
	ctx, cancel := context.WithCancel(t.Context())
	var cause atomic.Value
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		slow := dying.short(t)
		rig.Is(t, slow.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
			dying.Always(fault.DropRequest)
			<-held.Done() // cut off: it must learn by itself
			cause.Store(context.Cause(held))
			cancel()
			return nil
		}))
	}()
	<-ctx.Done()
	if err, ok := cause.Load().(error); !ok || !errors.Is(err, repo.ErrLockExpired) {
		t.Errorf("cause %v", cause.Load())
	}
	j := due(t, s, "staging")
	rig.Is(t, j.Done(t.Context()))
	audit(t, s)
	dying.Faults(nil)
	<-ended
	audit(t, s)
}

func TestRunStopsInOrder(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithCancel(t.Context())
	rig.Is(t, s.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
		cancel()
		<-held.Done()
		return context.Cause(held)
	}))
	wantResource(t, s, "staging", 2, 0, 0) // given back, the attempt not counted
	for info, err := range s.Jobs(t.Context(), "staging") {
		rig.Is(t, err)
		if info.Attempts != 0 || info.Running {
			t.Errorf("job %+v", info)
		}
	}
	audit(t, s)
}

func TestPanicsAreFailures(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{Retry: jobs.Retry{Attempts: 2, Min: time.Millisecond, Max: time.Millisecond}, Wait: repo.Wait{Max: 10 * time.Millisecond}})
	enqueue(t, s, "staging", 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var runs atomic.Int32
	go func() {
		for r, err := s.Resource(ctx, "staging"); err == nil && r.Dead == 0; r, err = s.Resource(ctx, "staging") {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error { runs.Add(1); panic("boom") }))
	if runs.Load() != 2 {
		t.Errorf("%d runs", runs.Load())
	}
	wantResource(t, s, "staging", 0, 0, 1)
}

// The test would hang if Run did not see what happens beside it.
func TestRunFindsWorkThatComesLater(t *testing.T) {
	b := newBench(t)
	s := b.open(t, jobs.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	looked := make(chan struct{}, 1)
	client := rig.Client(func(o *dynamodb.Options) {
		counter := fault.NewCounter(o.HTTPClient)
		counter.OnRequest(func(string, []byte) {
			select {
			case looked <- struct{}{}:
			default:
			}
		})
		o.HTTPClient = counter
	})
	runner := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{}))(t)
	go func() {
		<-looked
		enqueue(t, s, "new", 1)
	}()
	rig.Is(t, runner.Run(ctx, func(context.Context, *jobs.Job[deploy]) error { cancel(); return nil }))
	wantResource(t, s, "new", 0, 0, 0)
}

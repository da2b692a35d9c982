package jobs_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// service is a service with conflicts, which counts its requests.
type service struct {
	rig.Conflicts
	requests atomic.Int64
	looks    atomic.Int64 // for work, at all resources: they cost by the time, not by the job
}

func newService(latency time.Duration) *service {
	s := &service{Conflicts: rig.Conflicts{Latency: latency}}
	s.Saw = func(op string, body []byte) {
		if op == "Query" && bytes.Contains(body, []byte(`"RESOURCE#`)) {
			s.looks.Add(1)
		} else {
			s.requests.Add(1)
		}
	}
	return s
}

// With conflicts as Amazon's service makes them, jobs of one resource cost few
// requests, whatever the limit, and as many run at once as the limit allows.
func TestRequestsUnderConflicts(t *testing.T) {
	t.Parallel()
	for _, run := range []struct {
		limit, dispatchers, workers, jobs int
		most                              float64 // requests per job
	}{{1, 1, 8, rig.Share(25, 40), 5}, {1, 3, 4, rig.Share(25, 40), 8}, {10, 5, 2, rig.Share(30, 150), 12}, {50, 5, 10, rig.Share(100, 400), 8}} {
		t.Run(fmt.Sprintf("limit %d, %d dispatchers of %d", run.limit, run.dispatchers, run.workers), func(t *testing.T) {
			b := newBench(t)
			s := b.open(t, jobs.Config{})
			rig.Is(t, s.SetLimit(t.Context(), "staging", run.limit))
			enqueue(t, s, "staging", run.jobs)
			net := newService(4 * time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			most := min(run.limit, run.dispatchers*run.workers)
			var inside, done, over atomic.Int64
			full := make(chan struct{})
			var all sync.WaitGroup
			for range run.dispatchers {
				d := rig.Must(jobs.New[deploy](net.Client(), b.Table, jobs.Config{Workers: run.workers}))(t)
				all.Go(func() {
					rig.Is(t, d.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
						switch n := int(inside.Add(1)); {
						case n > most:
							over.Add(1)
						case n == most && done.Load() == 0:
							close(full)
						}
						select { // the first ones wait for each other: all workers have a job then
						case <-full:
						case <-held.Done():
						}
						time.Sleep(20 * time.Millisecond) // the work
						inside.Add(-1)
						if done.Add(1) == int64(run.jobs) {
							cancel()
						}
						return nil
					}))
				})
			}
			all.Wait()
			requests := float64(net.requests.Load()) / float64(run.jobs)
			t.Logf("%.1f requests per job, %d in conflict, beside %d of looks for work", requests, net.Refused.Load(), net.looks.Load())
			if done.Load() != int64(run.jobs) || over.Load() > 0 {
				t.Errorf("%d jobs done, want %d; %d beyond the limit", done.Load(), run.jobs, over.Load())
			}
			if requests > run.most {
				t.Errorf("%.1f requests per job", requests)
			}
			wantResource(t, s, "staging", 0, 0, 0)
			audit(t, s)
		})
	}
}

// Calls by hand share transactions, too, and each gets a job of its own.
func TestCallsByHandUnderConflicts(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 32, func(t *testing.T, network fault.Doer) {
		net := newService(2 * time.Millisecond)
		net.Next = network
		s := rig.Must(jobs.New[deploy](net.Client(), b.Table, jobs.Config{}))(t)
		defer func() {
			_ = s.Close(context.Background())
			synctest.Wait()
		}()
		const n = 20
		rig.Is(t, s.SetLimit(t.Context(), "staging", n))
		enqueue(t, s, "staging", n)
		net.requests.Store(0)
		var all sync.WaitGroup
		var seen sync.Map
		ready := make(chan *jobs.Job[deploy], n)
		for range n {
			all.Go(func() { ready <- rig.Must(s.Next(t.Context(), "staging"))(t) })
		}
		all.Wait()
		close(ready)
		for j := range ready {
			if _, again := seen.LoadOrStore(j.ID(), true); again {
				t.Errorf("job %s twice", j.ID())
			}
			all.Go(func() { rig.Is(t, j.Done(t.Context())) })
		}
		all.Wait()
		if requests := net.requests.Load(); requests > 5*n {
			t.Errorf("%d requests for %d jobs, %d in conflict", requests, n, net.Refused.Load())
		}
		wantResource(t, s, "staging", 0, 0, 0)
		audit(t, s)
	})
}

// refusing is a client whose transactions are refused, where met says so, for those of others.
func refusing(network fault.Doer, met func() bool) *dynamodb.Client {
	return rig.Client(rig.Over(network), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
		if op == "TransactWriteItems" && met() {
			return fault.TransactionConflict
		}
		return fault.None
	}))
}

// An id is repeated as long as the service knows its token, which was first sent long ago.
func TestAnIDIsNotRepeatedPastItsToken(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		first := time.Now()
		var last time.Duration
		s := rig.Must(jobs.New[deploy](refusing(network, func() bool { last = time.Since(first); return true }), b.Table, jobs.Config{}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		id, err := s.Enqueue(ctx, "mail", deploy{})
		rig.Is(t, err, repo.ErrOutcomeUnknown)
		time.Sleep(8*time.Minute + 50*time.Second)
		_, err = s.Enqueue(t.Context(), "mail", deploy{}, jobs.WithID(id))
		if rig.Is(t, err, repo.ErrOutcomeUnknown); last < 8*time.Minute || last > 9*time.Minute {
			t.Errorf("sent again after %v", last)
		}
	})
}

// A call that comes while another one's transaction is given up has one of its own.
func TestATransactionThatIsGivenUpTakesNobodyAlong(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var met func()
		client := refusing(network, func() bool {
			if met == nil {
				return false
			}
			met()
			met = nil
			return true
		})
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Lease: time.Hour, Wait: repo.Wait{Min: time.Hour, Max: time.Hour}}))(t)
		put(t, s, "staging", deploy{"v", 1})
		put(t, s, "staging", deploy{"v", 2})
		rig.Is(t, s.SetLimit(t.Context(), "staging", 2))
		runs := rig.Must(s.Next(t.Context(), "staging"))(t)
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error)
		met = func() {
			time.AfterFunc(time.Millisecond, leave)
			// The transaction is given up some time after its caller has left. Done waits
			// for it then, and not long enough to overtake it.
			time.AfterFunc(ddb.Settle-100*time.Millisecond, func() { ended <- runs.Done(t.Context()) })
		}
		_, err := s.Next(ctx, "staging")
		rig.Is(t, err, context.Canceled)
		rig.Is(t, <-ended)
		wantResource(t, s, "staging", 1, 0, 0)
		rig.Is(t, s.Close(t.Context()))
		synctest.Wait()
	})
}

// A dispatcher that leaves the jobs to others after conflicts holds up nobody: the resource is
// free for the next call of its process, and Run leaves nothing behind.
func TestAStartThatGivesWayHoldsUpNobody(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var conflicts atomic.Int64
		given := make(chan bool)
		client := refusing(network, func() bool {
			left := conflicts.Add(-1)
			if left == 0 {
				time.AfterFunc(time.Millisecond, func() { close(given) })
			}
			return left == 0 || left == 1
		})
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Lease: time.Hour, Wait: repo.Wait{Min: time.Hour, Max: time.Hour}}))(t)
		put(t, s, "staging", deploy{"v", 1})
		put(t, s, "staging", deploy{"v", 2})
		rig.Is(t, s.SetLimit(t.Context(), "staging", 2))
		runs := rig.Must(s.Next(t.Context(), "staging"))(t)
		conflicts.Store(2)
		_, end := dispatch(t, s)
		<-given
		began := time.Now()
		rig.Is(t, runs.Done(t.Context()))
		rig.Equal(t, time.Since(began), 0, "the end waited")
		end()
	})
}

// A job that the process of the dispatcher enqueues is started at once: without
// a look, of which there are none for an hour.
func TestAJobOfThisProcessStartsAtOnce(t *testing.T) {
	b := newBench(t)
	producer := b.open(t, jobs.Config{})
	for name, cfg := range map[string]jobs.Config{"new resource": {}, "known resource": {}} {
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		cfg.Poll, cfg.Wait = time.Hour, repo.Wait{Min: time.Hour, Max: time.Hour}
		looks := make(chan struct{}, 100)
		client := rig.Client(func(o *dynamodb.Options) {
			counter := fault.NewCounter(o.HTTPClient)
			counter.OnRequest(func(op string, body []byte) {
				if op == "Query" && strings.Contains(string(body), "RESOURCE#f") { // the last of a look
					looks <- struct{}{}
				}
			})
			o.HTTPClient = counter
		})
		s := rig.Must(jobs.New[deploy](client, b.Table, cfg))(t)
		started := make(chan int, 10)
		ended := make(chan error)
		go func() {
			ended <- s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error { started <- j.Value().N; return nil })
		}()
		<-looks
		for n := range 3 {
			put(t, producer, "staging", deploy{"v", n})
			select {
			case got := <-started:
				if got != n {
					t.Errorf("%s: job %d, want %d", name, got, n)
				}
			case <-ctx.Done():
				t.Errorf("%s: job %d was not started", name, n)
			}
		}
		cancel()
		rig.Is(t, <-ended)
	}
}

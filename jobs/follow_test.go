package jobs_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// line is the network of a process with one worker and work for it: what becomes of its
// readings of the line while the first job is being ended, and when its end is sent.
type line struct {
	mortal   *rig.Mortal
	returned time.Time // the first handler
	read     chan bool // the line is, after it
	ends     chan time.Duration
	query    fault.Kind             // what befalls that reading
	q        *queue                 // of the process
	stuck    atomic.Pointer[string] // the place of a job that is cancelled, which has no answer
	first    atomic.Pointer[func()] // happens before the first transaction of an end and a start arrives; may be nil
	together atomic.Int64
	alone    atomic.Int64 // ends without a start
	handled  atomic.Int64
}

// isEnd and isStart are parts of a transaction that ends a job, or starts one.
func isEnd(body string) bool   { return strings.Contains(body, `"Delete"`) }
func isStart(body string) bool { return strings.Contains(body, `"owner"`) }

func (l *line) befalls(op string, _ int, body []byte) fault.Kind {
	text, behind := string(body), l.handled.Load() > 0
	stuck := l.stuck.Load()
	switch {
	case stuck != nil && op == "TransactWriteItems" && isEnd(text) && strings.Contains(text, *stuck):
		return fault.HoldRequest
	case op == "Query" && strings.Contains(text, "JOBS#") && behind:
		select {
		case l.read <- true:
		default:
		}
		return l.query
	case op == "TransactWriteItems" && isEnd(text):
		switch {
		case !isStart(text):
			l.alone.Add(1)
		case l.together.Add(1) == 1:
			if first := l.first.Load(); first != nil {
				(*first)()
			}
		}
		select {
		case l.ends <- time.Since(l.returned):
		default:
		}
	}
	return fault.None
}

// inLine runs a process with two jobs in a line of which some may run at once. The first is
// its work; body does the rest, and ends it.
func inLine(t *testing.T, query fault.Kind, cfg jobs.Config, body func(t *testing.T, f *fleet, l *line, cancel func())) {
	inFleet(t, func(t *testing.T, f *fleet) {
		l := &line{mortal: &rig.Mortal{Next: f.network, Latency: time.Millisecond}, query: query, read: make(chan bool, 1), ends: make(chan time.Duration, 1)}
		client := rig.Client(rig.Over(l.mortal), rig.Broken(l.befalls), rig.WithHoursBetweenAttempts)
		cfg.Workers, cfg.Limit = 1, 8
		q := rig.Must(jobs.New[deploy](client, rig.Alias(f.Table, 99), cfg))(t)
		l.q = q
		enqueue(t, f.open(t, jobs.Config{Limit: 8}), "work", 2)
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			_ = q.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
				time.Sleep(20 * time.Millisecond)
				if l.handled.Load() == 0 {
					l.returned = time.Now()
				}
				l.handled.Add(1)
				return nil
			})
		})
		body(t, f, l, cancel)
		cancel()
		all.Wait()
	})
}

// sentWithin fails the test unless the end of the first job is sent in time.
func (l *line) sentWithin(t *testing.T, least, most time.Duration) {
	t.Helper()
	select {
	case after := <-l.ends:
		if after < least || after > most {
			t.Errorf("the end is sent %v after its handler has returned, want %v to %v", after, least, most)
		}
	case <-time.After(10 * time.Second):
		t.Error("the end is not sent")
	}
}

// An end and the next start are one transaction.
func TestAnEndStartsTheNextJob(t *testing.T) {
	inLine(t, fault.None, jobs.Config{}, func(t *testing.T, f *fleet, l *line, _ func()) {
		l.sentWithin(t, time.Millisecond, 10*time.Millisecond)
		time.Sleep(time.Second)
		if l.together.Load() != 1 || l.handled.Load() != 2 {
			t.Errorf("%d ends with a start, and %d jobs, want 1 and 2", l.together.Load(), l.handled.Load())
		}
		wantResource(t, f.open(t, jobs.Config{}), "work", 0, 0, 0)
	})
}

// The reading of the line and the end begin side by side: which of them comes first is no
// reason to leave the place to others.
func TestAStartThatReadsBeforeItsEndWaits(t *testing.T) {
	b := newBench(t)
	q := b.open(t, jobs.Config{Limit: 2})
	enqueue(t, q, "work", 3)
	for range 2 {
		rig.Must(q.Next(t.Context(), "work"))(t)
	}
	rig.Equal(t, rig.Must(q.FoundToFollow(t.Context(), "work"))(t), 1, "jobs that are found")
}

// Where another process has taken the job that was to be started the end waits for the next.
func TestAHeldEndWaitsForTheNextTry(t *testing.T) {
	inLine(t, fault.None, jobs.Config{}, func(t *testing.T, f *fleet, l *line, _ func()) {
		q := f.open(t, jobs.Config{})
		enqueue(t, q, "work", 1)
		takesOne := func() { rig.Must(q.Next(t.Context(), "work"))(t) }
		l.first.Store(&takesOne)
		time.Sleep(time.Second)
		if l.together.Load() != 2 || l.alone.Load() != 1 || l.handled.Load() != 2 {
			t.Errorf("%d ends with a start, %d without, and %d jobs, want 2, 1 and 2", l.together.Load(), l.alone.Load(), l.handled.Load())
		}
		wantResource(t, q, "work", 0, 1, 0)
		audit(t, q)
	})
}

// An end does not wait for a reading that has no answer, or fails.
func TestAHeldEndIsSentInTime(t *testing.T) {
	const held = 250 * time.Millisecond
	for name, c := range map[string]struct {
		query       fault.Kind
		cfg         jobs.Config
		least, most time.Duration
	}{
		"no answer":             {fault.HoldRequest, jobs.Config{}, held, held + 10*time.Millisecond},
		"the reading fails":     {fault.Truncate, jobs.Config{}, 0, 200 * time.Millisecond},
		"the lease is all used": {fault.HoldRequest, jobs.Config{Lease: time.Second}, 0, 5 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inLine(t, c.query, c.cfg, func(t *testing.T, f *fleet, l *line, _ func()) {
				l.sentWithin(t, c.least, c.most)
				time.Sleep(time.Second)
				audit(t, f.open(t, jobs.Config{}))
			})
		})
	}
}

// Nor does it wait longer where another transaction of its process has no answer: that the
// reading is late, and that the other one is, is found out at the same time.
func TestAHeldEndBesideACallWithoutAnAnswer(t *testing.T) {
	for range 4 {
		inLine(t, fault.HoldRequest, jobs.Config{}, func(t *testing.T, f *fleet, l *line, _ func()) {
			id := put(t, f.open(t, jobs.Config{Limit: 8}), "work", deploy{"v", 3}, jobs.Priority(4))
			place := strings.TrimSuffix(id, "-4")
			l.stuck.Store(&place)
			for rig.Must(l.q.Resource(t.Context(), "work"))(t).Running == 0 {
				time.Sleep(time.Millisecond)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { _ = l.q.Cancel(ctx, "work", id) })
			l.sentWithin(t, 250*time.Millisecond, 260*time.Millisecond)
			cancel()
			all.Wait()
			time.Sleep(time.Second)
			audit(t, f.open(t, jobs.Config{}))
		})
	}
}

// Who is told to stop while an end is held sends it at once.
func TestAHeldEndAtTheEndOfRun(t *testing.T) {
	inLine(t, fault.HoldRequest, jobs.Config{}, func(t *testing.T, f *fleet, l *line, cancel func()) {
		<-l.read
		time.Sleep(20 * time.Millisecond)
		cancel()
		l.sentWithin(t, 20*time.Millisecond, 30*time.Millisecond)
		time.Sleep(time.Second)
		wantResource(t, f.open(t, jobs.Config{}), "work", 1, 0, 0)
		audit(t, f.open(t, jobs.Config{}))
	})
}

// The job of a process that dies while it holds its end is done once more, when its lease is
// over.
func TestAProcessDiesWithAHeldEnd(t *testing.T) {
	inLine(t, fault.HoldRequest, jobs.Config{Lease: 3 * time.Second}, func(t *testing.T, f *fleet, l *line, cancel func()) {
		<-l.read
		l.mortal.Dead.Store(true)
		cancel()
		wantResource(t, f.open(t, jobs.Config{}), "work", 1, 1, 0)
		q, _ := f.process(t, jobs.Config{Lease: 3 * time.Second})
		started, end := dispatch(t, q)
		startsWithin(t, started, poll)
		startsWithin(t, started, 3*time.Second+time.Second+2*poll)
		time.Sleep(time.Second)
		end()
		wantResource(t, f.open(t, jobs.Config{}), "work", 0, 0, 0)
		audit(t, f.open(t, jobs.Config{}))
	})
}

// Whatever befalls the transaction of an end and a start, each job is handled, one that was
// told done no more, and no more run at once than may.
func TestEndsThatStartJobsOverABadNetwork(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Resend, fault.LateDuplicate, fault.DelayResponse, fault.Error500After, fault.Throttle, fault.TransactionConflict, fault.NoImage} {
		t.Run(kind.String(), func(t *testing.T) {
			inFleet(t, func(t *testing.T, f *fleet) {
				const limit, count = 3, 30
				enqueue(t, f.open(t, jobs.Config{Limit: limit}), "work", count)
				ctx, cancel := context.WithCancel(t.Context())
				var all sync.WaitGroup
				var running, together, faults atomic.Int64
				var done sync.Map
				for i := range limit {
					client := rig.Client(rig.Over(f.network), rig.Broken(func(op string, _ int, body []byte) fault.Kind {
						if text := string(body); op == "TransactWriteItems" && isEnd(text) && isStart(text) {
							if together.Add(1); rand.IntN(3) == 0 {
								faults.Add(1)
								return kind
							}
						}
						return fault.None
					}))
					q := rig.Must(jobs.New[deploy](client, rig.Alias(f.Table, 50+i), jobs.Config{Workers: 1, Limit: limit, Lease: time.Minute}))(t)
					all.Go(func() {
						rig.Is(t, q.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
							if running.Add(1) > limit {
								t.Error("more run than may")
							}
							defer running.Add(-1)
							time.Sleep(20 * time.Millisecond)
							if _, twice := done.LoadOrStore(j.ID(), true); twice {
								t.Errorf("%s is handled twice", j.ID())
							}
							return nil
						}))
					})
				}
				handled := func() (n int) {
					for range done.Range {
						n++
					}
					return n
				}
				for end := time.Now().Add(5 * time.Minute); handled() < count && time.Now().Before(end); {
					time.Sleep(time.Second)
				}
				time.Sleep(10 * time.Second) // the last answers and copies come
				cancel()
				all.Wait()
				wantResource(t, f.open(t, jobs.Config{}), "work", 0, 0, 0)
				audit(t, f.open(t, jobs.Config{}))
				n := handled()
				if n != count || faults.Load() == 0 {
					t.Errorf("%d jobs of %d are done, after %d faults in %d transactions", n, count, faults.Load(), together.Load())
				}
			})
		})
	}
}

// Processes that are more than the limit leave those alone who have a place.
func TestManyProcessesAtOneResource(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		const processes, limit, count = 50, 8, 300
		enqueue(t, f.open(t, jobs.Config{Limit: limit}), "work", count)
		net := &rig.Conflicts{Latency: 4 * time.Millisecond, Next: f.network}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var all sync.WaitGroup
		var done atomic.Int64
		began := time.Now()
		for i := range processes {
			q := rig.Must(jobs.New[deploy](net.Client(), rig.Alias(f.Table, 100+i), jobs.Config{Workers: 1}))(t)
			all.Go(func() {
				rig.Is(t, q.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
					time.Sleep(20 * time.Millisecond)
					if done.Add(1) == count {
						cancel()
					}
					return nil
				}))
			})
		}
		all.Wait()
		conflicts := float64(net.Refused.Load()) / count
		t.Logf("%.2f conflicts a job, %.0f jobs/s", conflicts, count/time.Since(began).Seconds())
		if conflicts > 3.5 {
			t.Errorf("%.2f conflicts a job", conflicts)
		}
	})
}

package jobs_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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

// fleet are processes that work on one table, in virtual time.
type fleet struct {
	bench
	network   fault.Doer
	processes int
}

// sent are the requests of one process.
type sent struct {
	mu     sync.Mutex
	bodies []string // guarded by mu: operation and body
	lost   func(op string, body []byte) bool
}

func (s *sent) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies = nil
}

// of is how many requests have a text in them.
func (s *sent) of(part string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bodies {
		if bytes.Contains([]byte(b), []byte(part)) {
			n++
		}
	}
	return n
}

func inFleet(t *testing.T, run func(t *testing.T, f *fleet)) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		setup := bench{&rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(network))}}
		run(t, &fleet{bench: setup, network: rig.Aliased(b.Table, network)})
	})
}

// process is a semaphore as a process of its own has it.
func (f *fleet) process(t *testing.T, cfg jobs.Config) (*queue, *sent) {
	f.processes++
	s := &sent{}
	client := rig.Client(func(o *dynamodb.Options) {
		o.HTTPClient = fault.New(fault.NewCounter(f.network), fault.Config{Script: func(op string, _ int, body []byte) fault.Kind {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.bodies = append(s.bodies, op+string(body))
			if s.lost != nil && s.lost(op, body) {
				return fault.DropRequest
			}
			return fault.None
		}})
	})
	return rig.Must(jobs.New[deploy](client, rig.Alias(f.Table, f.processes), cfg))(t), s
}

// dispatch runs a dispatcher until the end is called; it tells of each job that it starts.
func dispatch(t *testing.T, s *queue) (started chan string, end func()) {
	ctx, cancel := context.WithCancel(t.Context())
	started = make(chan string, 1000)
	var all sync.WaitGroup
	all.Go(func() {
		rig.Is(t, s.Run(ctx, func(_ context.Context, j *jobs.Job[deploy]) error {
			started <- j.Resource()
			return nil
		}))
	})
	return started, func() { cancel(); all.Wait() }
}

// startsWithin fails the test unless a job is started in time.
func startsWithin(t *testing.T, started chan string, most time.Duration) {
	t.Helper()
	select {
	case <-started:
	case <-time.After(most):
		t.Errorf("no job was started within %v", most)
	}
}

const poll = 2 * time.Second // the default

// Who does not know whether its job is in the table tells of it all the same: an idle
// dispatcher of another process starts it as soon as any.
func TestAJobWhoseEnqueueIsUnknownStartsAtOnce(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(t *testing.T, q *queue, started chan string) error{
		"Enqueue": func(t *testing.T, q *queue, _ chan string) error {
			_, err := q.Enqueue(t.Context(), "work", deploy{})
			return err
		},
		"EnqueueMany": func(t *testing.T, q *queue, _ chan string) error {
			_, err := q.EnqueueMany(t.Context(), "work", make([]deploy, 3))
			return err
		},
		"a tick": func(t *testing.T, q *queue, started chan string) error {
			ctx, cancel := context.WithCancel(t.Context())
			asked, ended := make(chan bool, 1), make(chan bool)
			q.Periodic("tick", jobs.Every(time.Minute), func(time.Time) (string, deploy, error) {
				asked <- true
				return "work", deploy{}, nil
			})
			go func() {
				defer close(ended)
				_ = q.Run(ctx, func(context.Context, *jobs.Job[deploy]) error { started <- "here"; return nil })
			}()
			<-asked
			time.Sleep(time.Second) // with its request under way
			cancel()
			<-ended
			return repo.ErrOutcomeUnknown
		},
	} {
		t.Run(name, func(t *testing.T) {
			inFleet(t, func(t *testing.T, f *fleet) {
				idle, _ := f.process(t, jobs.Config{})
				started, end := dispatch(t, idle)
				defer end()
				time.Sleep(10*time.Minute + poll/2)
				unanswered := rig.Client(rig.Over(f.network), rig.Broken(func(op string, _ int, body []byte) fault.Kind {
					if op == "TransactWriteItems" && (name != "a tick" || bytes.Contains(body, []byte("SCHEDULES"))) {
						return fault.LoseResponse
					}
					return fault.None
				}))
				rig.Is(t, call(t, rig.Must(jobs.New[deploy](unanswered, f.Table, jobs.Config{}))(t), started), repo.ErrOutcomeUnknown)
				startsWithin(t, started, poll)
			})
		})
	}
}

// An idle dispatcher reads one row each Poll, and all shards now and then. A job of
// another process still starts within a Poll.
func TestAnIdleDispatcherListens(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		s, sent := f.process(t, jobs.Config{})
		producer, produced := f.process(t, jobs.Config{})
		enqueue(t, producer, "known", 1)
		started, end := dispatch(t, s)
		defer end()
		startsWithin(t, started, poll)
		for round := range rig.Share(1, 3) {
			time.Sleep(2 * time.Minute) // it has forgotten that there was a mark
			sent.reset()
			time.Sleep(10 * time.Minute)
			if looks, all := sent.of("BELL"), sent.of("Query"); looks < 300 || looks > 600 || all < 16*18 || all > 16*21 {
				t.Errorf("%d looks at the wake-up row and %d queries in ten idle minutes", looks, all)
			}
			produced.reset()
			enqueue(t, producer, fmt.Sprintf("new-%d", round), 1)
			startsWithin(t, started, poll+100*time.Millisecond)
			if n := produced.of("BELL"); n != 1 {
				t.Errorf("%d marks for one job", n)
			}
		}
	})
}

// A producer marks its shard once for all that it enqueues within some seconds, and none of it is
// overheard.
func TestOneMarkStandsForSeconds(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		s, _ := f.process(t, jobs.Config{})
		producer, produced := f.process(t, jobs.Config{})
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(2 * time.Minute)
		for range 30 {
			time.Sleep(3 * time.Second)
			enqueue(t, producer, "staging", 1)
			startsWithin(t, started, poll+100*time.Millisecond)
		}
		if n := produced.of("BELL"); n > 8 {
			t.Errorf("%d marks in 90 s", n)
		}
	})
}

// A mark that is lost, as with its producer, or with a program that makes none,
// delays a job, and no more.
func TestAMarkIsLost(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		s, _ := f.process(t, jobs.Config{})
		producer, produced := f.process(t, jobs.Config{})
		produced.lost = func(op string, body []byte) bool { return op == "UpdateItem" && bytes.Contains(body, []byte("BELL")) }
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(2 * time.Minute)
		enqueue(t, producer, "staging", 1)
		startsWithin(t, started, 15*poll+poll)
		enqueue(t, producer, "staging", 1)
		if n := produced.of("BELL"); n != 2 {
			t.Errorf("%d marks: one that was lost is none", n)
		}
		startsWithin(t, started, 15*poll+poll)
	})
}

// A dead letter that is queued again is heard of, too, and so is the job of a transaction.
func TestARequeueMarks(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		once := jobs.Config{Retry: jobs.Retry{Attempts: 1}}
		s, _ := f.process(t, jobs.Config{})
		operator, _ := f.process(t, once)
		id := put(t, operator, "staging", deploy{})
		rig.Is(t, rig.Must(operator.Next(t.Context(), "staging"))(t).Fail(t.Context(), nil))
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(2 * time.Minute)
		rig.Is(t, operator.Requeue(t.Context(), "staging", id))
		startsWithin(t, started, poll+100*time.Millisecond)
	})
}

// Where nothing is due, or all that runs is alive, the line is not read again and again,
// but at the time when that may change.
func TestALookThatFoundNothingIsRemembered(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		const later, lease = 5 * time.Minute, 30 * time.Second
		other, _ := f.process(t, jobs.Config{Limit: 2})
		far := num(fmt.Sprint(time.Now().Add(later).Unix()))
		for i := range 5 {
			name := fmt.Sprint("later-", i)
			rig.Is(t, other.Cancel(t.Context(), name, put(t, other, name, deploy{})))
			backlog(t, f.bench, name, 3, sooner, attrs{"notBefore": far})
		}
		for i := range 5 {
			enqueue(t, other, fmt.Sprint("full-", i), 30)
			rig.Must(other.Next(t.Context(), fmt.Sprint("full-", i)))(t)
			rig.Must(other.Next(t.Context(), fmt.Sprint("full-", i)))(t)
		}
		s, sent := f.process(t, jobs.Config{})
		started, end := dispatch(t, s)
		defer end()
		time.Sleep(time.Minute)
		sent.reset()
		const leases = 5
		time.Sleep(leases * lease)
		// Each lease, of five resources each a look, or two.
		if n := sent.of(`"JOBS#full`); n < 5*leases || n > 5*leases*3 {
			t.Errorf("%d looks at full lines in %d leases", n, leases)
		}
		if n := sent.of(`"JOBS#later`); n > 2*5*leases {
			t.Errorf("%d looks at lines where nothing is due, in %d leases", n, leases)
		}
		if len(started) > 0 {
			t.Errorf("%s was started", <-started)
		}
		time.Sleep(later - time.Minute - leases*lease - 10*time.Second)
		if len(started) > 0 {
			t.Errorf("%s was started before it was due", <-started)
		}
		startsWithin(t, started, 10*time.Second+2*poll)
	})
}

// Resources that are full stand in nobody's way, and cost a dispatcher that comes
// nothing before it works.
func TestFullResourcesAreNotWadedThrough(t *testing.T) {
	t.Parallel()
	inFleet(t, func(t *testing.T, f *fleet) {
		other, _ := f.process(t, jobs.Config{Limit: 3})
		for i := range 60 {
			name := fmt.Sprint("full-", i)
			enqueue(t, other, name, 4)
			for range 3 {
				rig.Must(other.Next(t.Context(), name))(t)
			}
		}
		enqueue(t, other, "room", 1)
		s, sent := f.process(t, jobs.Config{Workers: 1})
		started, end := dispatch(t, s)
		defer end()
		startsWithin(t, started, poll)
		if n := sent.of(`"JOBS#full`); n > 30 {
			t.Errorf("%d full lines were looked at before the one with room", n)
		}
	})
}

// The job of a dead holder is taken over although its resource is full and others have
// work all the time.
func TestTheDeadGetTheirTurnBesideABacklog(t *testing.T) {
	inFleet(t, func(t *testing.T, f *fleet) {
		dead, _ := f.process(t, jobs.Config{})
		dead.SetClock(-time.Hour)
		enqueue(t, dead, "dead", 1)
		rig.Must(dead.Next(t.Context(), "dead"))(t)
		for i := range 20 {
			enqueue(t, dead, fmt.Sprint("busy-", i), 1)
			backlog(t, f.bench, fmt.Sprint("busy-", i), 40, sooner, nil)
		}
		s, _ := f.process(t, jobs.Config{Workers: 1})
		started, end := dispatch(t, s)
		defer end()
		var order []string
		for !slices.Contains(order, "dead") && len(order) < 600 {
			select {
			case r := <-started:
				order = append(order, r)
			case <-time.After(time.Minute):
				t.Fatalf("nothing is started any more after %d jobs", len(order))
			}
		}
		if len(order) == 600 {
			t.Error("600 jobs were started before that of the dead holder")
		}
	})
}

// sooner are places before all that are enqueued now.
func sooner(i int) string { return fmt.Sprintf("0%014x-AAAAAAAAAAAAA", i) }

// Callers of one process that enqueue jobs of one resource are not in each other's way.
func TestEnqueuesOfOneProcessDoNotConflict(t *testing.T) {
	b := newBench(t)
	net := newService(2 * time.Millisecond)
	s := rig.Must(jobs.New[deploy](net.Client(), b.Table, jobs.Config{}))(t)
	var all sync.WaitGroup
	var done atomic.Int64
	for range 20 {
		all.Go(func() {
			put(t, s, "staging", deploy{})
			done.Add(1)
		})
	}
	all.Wait()
	if n := net.Refused.Load(); n > 0 || done.Load() != 20 {
		t.Errorf("%d conflicts", n)
	}
	wantResource(t, s, "staging", 20, 0, 0)
}

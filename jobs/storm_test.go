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

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// A storm is a fleet over a bad network: requests and answers are lost, come late and
// twice, and processes die at any moment.
type storm struct {
	*fleet
	t   *testing.T
	rng *rand.Rand
	all sync.WaitGroup
}

const hit = 0.1 // the share of the requests that a fault befalls

func inStorm(t *testing.T, seed uint64, run func(t *testing.T, s *storm)) {
	inFleet(t, func(t *testing.T, f *fleet) {
		s := &storm{fleet: f, t: t, rng: rand.New(rand.NewPCG(seed, 7))}
		run(t, s)
		s.all.Wait()
		time.Sleep(time.Minute) // the last copies come
		audit(t, f.open(t, jobs.Config{}))
	})
}

// peer is a process over the bad network, whose clock runs ahead.
func (s *storm) peer(ahead time.Duration, cfg jobs.Config) (*queue, *rig.Mortal) {
	s.processes++
	bad := fault.New(s.network, fault.Config{Seed: s.rng.Uint64(), Rate: hit, MaxDelay: 2 * time.Second})
	mortal := &rig.Mortal{Next: bad, Latency: 2 * time.Millisecond}
	q := rig.Must(jobs.New[deploy](rig.Client(rig.Over(mortal)), rig.Alias(s.Table, s.processes), cfg))(s.t)
	q.SetClock(ahead)
	return q, mortal
}

// worker runs a peer until it is killed.
func (s *storm) worker(ahead time.Duration, cfg jobs.Config, setUp func(*queue), handler func(context.Context, *jobs.Job[deploy]) error) (kill func()) {
	q, mortal := s.peer(ahead, cfg)
	setUp(q)
	ctx, cancel := context.WithCancel(s.t.Context())
	s.all.Go(func() {
		if err := q.Run(ctx, handler); ctx.Err() == nil {
			s.t.Errorf("a dispatcher has ended: %v", err)
		}
	})
	return func() { mortal.Dead.Store(true); cancel() }
}

// between is a random time.
func (s *storm) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.rng.Int64N(int64(most-least)))
}

// fates are what became of jobs, as the callers were told.
type fates struct {
	mu        sync.Mutex
	done      map[string]bool
	calm      atomic.Bool     // jobs are not put off any more
	unknown   map[string]bool // somebody who was to end it was not told whether it has
	cancelled map[string]time.Time
	until     map[string]time.Time // not to be started before, as a Reschedule has said
}

// noted runs note, which is not to meet others.
func (f *fates) noted(note func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	note()
}

// handle notes a start, and that the job is done as far as its handler is concerned.
func (f *fates) handle(t *testing.T) func(context.Context, *jobs.Job[deploy]) error {
	return func(ctx context.Context, j *jobs.Job[deploy]) error {
		id, now := j.ID(), time.Now()
		f.noted(func() {
			if at, told := f.cancelled[id]; told {
				t.Errorf("%v was started %v after its Cancel", j, now.Sub(at))
			}
			if at := f.until[id]; now.Before(at) {
				t.Errorf("%v was started %v before the time that it was given", j, at.Sub(now))
			}
			delete(f.until, id)
		})
		if !f.calm.Load() && rand.IntN(30) > 0 {
			_ = j.Snooze(ctx, time.Duration(rand.IntN(500))*time.Millisecond) // for another start
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		err := j.Done(ctx)
		f.noted(func() {
			f.done[id], f.unknown[id] = f.done[id] || err == nil, f.unknown[id] || err != nil
			if _, told := f.cancelled[id]; told {
				t.Errorf("%v ran beside its Cancel", j)
			}
		})
		return nil
	}
}

// operate cancels and reschedules jobs of the list until the end of ctx.
func (f *fates) operate(ctx context.Context, t *testing.T, q *queue, rng *rand.Rand, ids, own []string) {
	for ctx.Err() == nil {
		id := ids[rng.IntN(len(ids))]
		sent, later := time.Now(), time.Duration(rng.IntN(4)*rng.IntN(1_000))*time.Millisecond
		if rng.IntN(50) == 0 {
			err := q.Cancel(ctx, "work", id)
			f.noted(func() {
				switch at, told := f.cancelled[id]; {
				case err == nil && (f.done[id] || told):
					t.Errorf("%s was cancelled, done %v, and cancelled before at %v", id, f.done[id], at)
				case err == nil:
					f.cancelled[id] = sent
				default:
					f.expected(t, err)
					f.unknown[id] = f.unknown[id] || errors.Is(err, repo.ErrOutcomeUnknown) || errors.Is(err, context.Canceled)
				}
			})
			continue
		}
		id = own[rng.IntN(len(own))] // which nobody else moves
		f.noted(func() { delete(f.until, id) })
		switch err := q.Reschedule(ctx, "work", id, sent.Add(later)); err {
		case nil:
			f.noted(func() { f.until[id] = sent.Add(later) })
		default:
			f.expected(t, err)
		}
	}
}

func (*fates) expected(t *testing.T, err error) {
	for _, one := range []error{repo.ErrNotFound, repo.ErrLocked, repo.ErrOutcomeUnknown, repo.ErrConflict, context.Canceled} {
		if errors.Is(err, one) {
			return
		}
	}
	t.Errorf("an operator is told: %v", err)
}

// Of what cancels, moves and starts a job in a storm one wins, and who is told so has; in
// the end each job is done or cancelled.
func TestCancelsMovesAndStartsInAStorm(t *testing.T) {
	t.Parallel()
	for seed := range uint64(rig.Share(1, 20)) {
		inStorm(t, 100+seed, func(t *testing.T, s *storm) {
			f := &fates{done: map[string]bool{}, unknown: map[string]bool{}, cancelled: map[string]time.Time{}, until: map[string]time.Time{}}
			producer, _ := s.process(t, jobs.Config{})
			var ids []string
			for i := range 40 {
				ids = append(ids, put(t, producer, "work", deploy{N: i}, jobs.After(time.Duration(i%20)*time.Second), jobs.Priority(i%4+1)))
			}
			cfg := jobs.Config{Lease: 3 * time.Second, Limit: 4, Retry: jobs.Retry{Attempts: 100, Min: time.Second}}
			start := func() func() { return s.worker(0, cfg, func(*queue) {}, f.handle(t)) }
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 4 {
				q, _ := s.peer(0, cfg)
				rng := rand.New(rand.NewPCG(s.rng.Uint64(), 1))
				s.all.Go(func() { f.operate(ctx, t, q, rng, ids, ids[10*i:10*i+10]) })
			}
			kills := []func(){start(), start()}
			for range rig.Share(2, 6) {
				time.Sleep(s.between(time.Second, 10*time.Second))
				i := s.rng.IntN(2)
				kills[i]()
				kills[i] = start()
			}
			cancel()
			f.calm.Store(true)
			time.Sleep(2 * time.Minute)
			for _, kill := range kills {
				kill()
			}
			wantResource(t, producer, "work", 0, 0, 0)
			for _, id := range ids {
				if _, told := f.cancelled[id]; !told && !f.done[id] && !f.unknown[id] {
					t.Errorf("%s is gone, and nobody has ended it", id)
				}
			}
			t.Logf("%d done, %d cancelled of %d", len(f.done), len(f.cancelled), len(ids))
		})
	}
}

// Over a bad network one job at most waits or runs under a key, all who are told an id are
// told the same, and when it is done the key is free.
func TestUniqueInAStorm(t *testing.T) {
	inStorm(t, 200, func(t *testing.T, s *storm) {
		clean, _ := s.process(t, jobs.Config{Limit: 8})
		for round := range rig.Share(15, 150) {
			key, told := jobs.Unique(fmt.Sprint(round%3)), sync.Map{}
			var all sync.WaitGroup
			for i := range 5 {
				q, _ := s.peer(0, jobs.Config{Limit: 8})
				all.Go(func() {
					id, err := q.Enqueue(t.Context(), "work", deploy{N: i}, key)
					if err == nil || errors.Is(err, jobs.ErrExists) {
						told.Store(id, true)
						return
					}
					s.expectedOfEnqueue(err)
				})
			}
			all.Wait()
			time.Sleep(5 * time.Second) // copies come
			there := map[any]bool{}
			for j, err := range clean.Jobs(t.Context(), "work") {
				rig.Is(t, err)
				there[j.ID] = true
			}
			for id := range told.Range {
				if !there[id] {
					t.Errorf("round %d: the id %v was told, the jobs are %v", round, id, there)
				}
			}
			if len(there) > 1 {
				t.Errorf("round %d: %d jobs under one key", round, len(there))
			}
			for range there {
				rig.Is(t, rig.Must(clean.Next(t.Context(), "work"))(t).Done(t.Context()))
			}
			id := put(t, clean, "work", deploy{}, key)
			rig.Is(t, clean.Cancel(t.Context(), "work", id))
		}
	})
}

func (s *storm) expectedOfEnqueue(err error) {
	if !errors.Is(err, repo.ErrOutcomeUnknown) {
		s.t.Logf("Enqueue: %v", err)
	}
}

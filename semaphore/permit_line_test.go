package semaphore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Callers of one semaphore stand in line for the permits of a resource.

// process is one with a network of its own, in virtual time.
type process struct {
	bench
	net  *rig.Mortal
	s    *sem
	sent atomic.Int64
	rule atomic.Pointer[func(body string) (before, after bool)]
}

// besideAnother runs a test on two processes in virtual time.
func besideAnother(t *testing.T, cfg semaphore.Config, test func(t *testing.T, p, other *process)) {
	t.Helper()
	b := newBench(t)
	rig.InVirtualTime(t, 32, func(t *testing.T, network fault.Doer) {
		open := func() *process {
			p := &process{bench: b, net: &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}}
			p.net.Lost = p.befalls
			client := rig.Client(func(o *dynamodb.Options) { o.HTTPClient = p.net })
			p.s = rig.Must(semaphore.New[deploy](client, b.Table, cfg))(t)
			return p
		}
		p, other := open(), open()
		defer func() {
			_ = p.s.Close(context.Background())
			_ = other.s.Close(context.Background())
			synctest.Wait()
		}()
		test(t, p, other)
	})
}

// lose counts requests from now on; rule, where set, says which are lost.
func (p *process) lose(rule func(body string) (before, after bool)) {
	p.sent.Store(0)
	p.rule.Store(&rule)
}

func (p *process) befalls(_, body string) (before, after bool) {
	p.sent.Add(1)
	if rule := p.rule.Load(); rule != nil && *rule != nil {
		return (*rule)(body)
	}
	return false, false
}

// passes tells the request that passes a permit on.
func passes(body string) bool {
	return strings.Contains(body, "REMOVE") && strings.Contains(body, "attribute_not_exists")
}

type granted struct {
	permit *semaphore.Permit
	err    error
}

// acquire is a caller.
func (p *process) acquire(ctx context.Context) chan granted {
	got := make(chan granted, 1)
	go func() {
		permit, err := p.s.Acquire(ctx, "printer")
		got <- granted{permit, err}
	}()
	synctest.Wait()
	return got
}

// serve gives back permits in the order in which they come, and demands that tokens grow.
func serve(t *testing.T, last *semaphore.Permit, callers ...chan granted) {
	t.Helper()
	for _, c := range callers {
		got := <-c
		rig.Is(t, got.err)
		if got.permit == nil {
			return
		}
		if got.permit.Token() <= last.Token() {
			t.Errorf("token %d after %d", got.permit.Token(), last.Token())
		}
		rig.Is(t, got.permit.Release(t.Context()))
		last = got.permit
	}
}

func wantNone(t *testing.T, s *sem) {
	t.Helper()
	r := rig.Must(s.Resource(context.Background(), "printer"))(t)
	left := rig.Must(s.Permits(context.Background(), "printer"))(t)
	if r.Running != 0 || len(left) != 0 {
		t.Errorf("%d are counted, and %v are held", r.Running, left)
	}
}

// A permit goes from caller to caller, in the order in which they came, by one request.
func TestCallersOfOneSemaphoreStandInLine(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour, NamePermits: true}, func(t *testing.T, p, _ *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		var callers []chan granted
		for range 5 {
			callers = append(callers, p.acquire(t.Context()))
		}
		p.lose(nil)
		rig.Is(t, first.Release(t.Context()))
		rig.Is(t, first.Extend(t.Context()), repo.ErrReleased)
		serve(t, first, callers...)
		if n := p.sent.Load(); n != 6 {
			t.Errorf("%d requests for 5 permits, want one for each and one to end", n)
		}
		wantNone(t, p.s)
		if n := p.s.Lines(); n != 0 {
			t.Errorf("%d lines of nobody", n)
		}
	})
}

// While all permits are those of its own process a caller hardly asks; it hears of one
// that is given back, by its limit as many as there are.
func TestPermitsOfOneProcessGoSideBySide(t *testing.T) {
	besideAnother(t, semaphore.Config{Limit: 3, Lease: time.Hour}, func(t *testing.T, p, _ *process) {
		var mu sync.Mutex
		inside, most := 0, 0
		var all sync.WaitGroup
		for range 9 {
			all.Go(func() {
				for range 10 {
					rig.Is(t, p.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error {
						mu.Lock()
						inside++
						most = max(most, inside)
						mu.Unlock()
						time.Sleep(20 * time.Millisecond)
						mu.Lock()
						inside--
						mu.Unlock()
						return nil
					}))
				}
			})
		}
		began := time.Now()
		all.Wait()
		if most != 3 {
			t.Errorf("%d at once, the limit is 3", most)
		}
		if n := p.sent.Load(); n > 90*3/2 {
			t.Errorf("%d requests for 90 permits", n)
		}
		if took := time.Since(began); took > 30*30*time.Millisecond {
			t.Errorf("it took %v", took)
		}
		wantNone(t, p.s)
	})
}

// A caller behind a permit of its own process that is held for long asks once a second,
// for what an operator does is seen at the table only.
func TestOneAsksForAll(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		held := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		callers := []chan granted{p.acquire(ctx), p.acquire(t.Context()), p.acquire(t.Context())}
		p.lose(nil)
		time.Sleep(20 * time.Second)
		if n := p.sent.Load(); n < 15 || n > 21 {
			t.Errorf("%d requests in 20 s", n)
		}
		cancel() // the next one asks
		got := <-callers[0]
		rig.Is(t, got.err, semaphore.ErrBusy, context.Canceled)
		rig.Is(t, other.s.BreakPermit(t.Context(), "printer", held.ID()))
		began := time.Now()
		second := <-callers[1]
		rig.Is(t, second.err)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		rig.Is(t, held.Release(t.Context()), repo.ErrLockLost)
		rig.Is(t, second.permit.Release(t.Context()))
		serve(t, second.permit, callers[2])
		wantNone(t, p.s)
	})
}

// A permit does not stay in one process while another waits for it.
func TestALineOfPermitsLetsOthersIn(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				for ctx.Err() == nil {
					err := p.s.Do(ctx, "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil })
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
				}
			})
		}
		began := time.Now()
		const rounds = 10
		for range rounds {
			rig.Is(t, other.s.Do(t.Context(), "printer", func(context.Context, *semaphore.Permit) error { time.Sleep(10 * time.Millisecond); return nil }))
		}
		took := time.Since(began)
		cancel()
		all.Wait()
		if took > rounds*3*time.Second {
			t.Errorf("%v for %d permits", took, rounds)
		}
		wantNone(t, p.s)
	})
}

// A limit that was lowered, and a pause, hold from the next permit on, also for whom one is
// passed on to.
func TestPassingOnKeepsToLimitAndPause(t *testing.T) {
	for name, pauses := range map[string]bool{"limit": false, "pause": true} {
		t.Run(name, func(t *testing.T) {
			besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
				rig.Is(t, other.s.SetLimit(t.Context(), "printer", 2))
				one := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				two := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
				third := p.acquire(t.Context())
				if pauses {
					rig.Is(t, other.s.Pause(t.Context(), "printer"))
				} else {
					rig.Is(t, other.s.SetLimit(t.Context(), "printer", 1))
				}
				rig.Is(t, one.Release(t.Context()))
				time.Sleep(3 * time.Second)
				if r := rig.Must(other.s.Resource(t.Context(), "printer"))(t); r.Running != 1 || len(third) != 0 {
					t.Errorf("%+v: it was passed on", r)
				}
				if pauses {
					rig.Is(t, other.s.Resume(t.Context(), "printer"))
				}
				rig.Is(t, two.Release(t.Context()))
				serve(t, two, third)
				wantNone(t, p.s)
			})
		})
	}
}

// Whatever becomes of the request that passes a permit on, one has it, or nobody.
func TestPassingOnUnderFaults(t *testing.T) {
	for _, arrives := range []bool{false, true} {
		for _, hits := range []int64{1, 3} {
			t.Run("", func(t *testing.T) {
				besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, _ *process) {
					first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
					second, third := p.acquire(t.Context()), p.acquire(t.Context())
					var n atomic.Int64
					p.lose(func(body string) (before, after bool) {
						hit := passes(body) && n.Add(1) <= hits
						return hit && !arrives, hit && arrives
					})
					rig.Is(t, first.Release(t.Context()))
					serve(t, first, second, third)
					wantNone(t, p.s)
				})
			})
		}
	}
}

// A permit that was broken is not passed on; nor is one on a dead network, where its
// release ends in doubt: who waits asks for itself.
func TestWhatIsGoneIsNotPassedOn(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Minute}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		rig.Is(t, other.s.BreakPermit(t.Context(), "printer", first.ID()))
		rig.Is(t, first.Release(t.Context()), repo.ErrLockLost)
		got := <-second
		rig.Is(t, got.err)
		third := p.acquire(t.Context())
		p.lose(func(body string) (before, after bool) { return false, passes(body) })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rig.Is(t, got.permit.Release(ctx), repo.ErrOutcomeUnknown)
		p.lose(nil)
		serve(t, got.permit, third)
		wantNone(t, p.s)
	})
}

// Whoever gives up while a permit is passed on to it leaves nothing, whenever the answer
// comes.
func TestGivingUpWhileBeingPassedAPermit(t *testing.T) {
	for name, answer := range map[string]time.Duration{"at once": 0, "a moment later": 500 * time.Millisecond, "too late": 5 * time.Second, "never": -1} {
		for _, closes := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, _ *process) {
					first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					second, third := p.acquire(ctx), p.acquire(t.Context())
					closed := make(chan error, 1)
					var once atomic.Bool
					p.lose(func(body string) (before, after bool) {
						if !passes(body) || !once.CompareAndSwap(false, true) {
							return false, false
						}
						if closes {
							go func() { closed <- p.s.Close(context.WithoutCancel(t.Context())) }()
						} else {
							cancel()
						}
						time.Sleep(answer)
						return false, answer < 0
					})
					ends := make(chan error, 1)
					go func() { ends <- first.Release(t.Context()) }()
					began := time.Now()
					got := <-second
					if closes {
						rig.Is(t, got.err, semaphore.ErrClosed)
					} else if got.err == nil { // in this moment it was there
						go func() { _ = got.permit.Release(t.Context()) }()
					} else {
						rig.Is(t, got.err, semaphore.ErrBusy, context.Canceled)
					}
					if took := time.Since(began); took > 4*time.Second {
						t.Errorf("it took %v", took)
					}
					rig.Is(t, <-ends)
					if closes {
						rig.Is(t, <-closed)
						rig.Is(t, (<-third).err, semaphore.ErrClosed)
					} else {
						serve(t, first, third)
					}
					wantNone(t, p.s)
				})
			})
		}
	}
}

// A process that dies with a permit and a line behind it keeps others out for its lease.
func TestALineWhoseProcessIsKilled(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: 10 * time.Second}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		ctx, cancel := context.WithCancel(t.Context())
		second := p.acquire(ctx)
		p.net.Dead.Store(true)
		_ = first.Release(t.Context())
		began := time.Now()
		theirs := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		if took := time.Since(began); took > 13*time.Second || theirs.Token() <= first.Token() {
			t.Errorf("token %d after %d, after %v", theirs.Token(), first.Token(), took)
		}
		p.net.Dead.Store(false)
		rig.Is(t, theirs.Release(t.Context()))
		cancel()
		<-second
		wantNone(t, other.s)
	})
}

// Whatever is lost on the way, never more than the limit have a permit, and nothing stays.
func TestLinesOfPermitsUnderFaults(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := []*sem{b.open(t, semaphore.Config{Limit: 2}), b.open(t, semaphore.Config{Limit: 2})}
	random := rand.New(rand.NewPCG(5, 6)) // repeatable on purpose
	kinds := []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Resend, fault.Delay}
	b.Faults(func(string, int, []byte) fault.Kind {
		if random.IntN(10) > 0 {
			return fault.None
		}
		return kinds[random.IntN(len(kinds))]
	})
	var inside atomic.Int64
	var tokens sync.Map
	var done sync.WaitGroup
	for i := range 8 {
		done.Go(func() {
			for range rig.Share(6, 30) {
				permit, err := all[i%2].Acquire(t.Context(), "printer")
				if err != nil {
					continue // without any answer
				}
				if n := inside.Add(1); n > 2 {
					t.Errorf("%d have a permit", n)
				}
				if _, twice := tokens.LoadOrStore(permit.Token(), true); twice {
					t.Errorf("token %d twice", permit.Token())
				}
				inside.Add(-1)
				for err = permit.Release(t.Context()); errors.Is(err, repo.ErrOutcomeUnknown); err = permit.Release(t.Context()) {
				}
				rig.Is(t, err)
			}
		})
	}
	done.Wait()
	b.Faults(nil)
	wantNone(t, all[0])
	audit(t, all[0])
	if n := []int{all[0].Lines(), all[1].Lines()}; !slices.Equal(n, []int{0, 0}) {
		t.Errorf("%d lines are left of nobody", n)
	}
}

// Whoever waits behind others of its process, and leaves, says that the resource is busy,
// and how, as far as its process knows.
func TestLeavingTheLineOfPermits(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour}, func(t *testing.T, p, other *process) {
		held := rig.Must(other.s.Acquire(t.Context(), "printer"))(t)
		for _, after := range []time.Duration{0, 50 * time.Millisecond} { // before the first answer, and after it
			ctx, cancel := context.WithCancel(t.Context())
			first, second := p.acquire(ctx), p.acquire(ctx)
			time.Sleep(after)
			cancel()
			for _, c := range []chan granted{first, second} {
				rig.Is(t, (<-c).err, semaphore.ErrBusy, repo.ErrLocked, context.Canceled)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var busy *semaphore.BusyError
		if got := <-p.acquire(ctx); !errors.As(got.err, &busy) || busy.Running != 1 {
			t.Errorf("%v does not say how the resource is used", got.err)
		}
		rig.Is(t, held.Release(t.Context()))
		wantNone(t, p.s)
	})
}

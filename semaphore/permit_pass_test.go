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
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Whoever gives a permit back passes it on to the next caller of its process.

// A permit that is passed on says who has it, and the row nothing of those before.
func TestAPermitThatIsPassedOnNamesItsHolder(t *testing.T) {
	besideAnother(t, semaphore.Config{Lease: time.Hour, NamePermits: true, Owner: "depot"}, func(t *testing.T, p, other *process) {
		first := rig.Must(p.s.Acquire(t.Context(), "printer"))(t)
		second := p.acquire(t.Context())
		time.Sleep(5 * time.Second)
		passed := time.Now()
		rig.Is(t, first.Release(t.Context()))
		got := <-second
		rig.Is(t, got.err)
		held := rig.Must(other.s.Permits(t.Context(), "printer"))(t)
		if len(held) != 1 || held[0].Owner != "depot" || held[0].Since.Unix() != passed.Unix() {
			t.Errorf("%+v", held)
		}
		rig.Is(t, got.permit.Release(t.Context()))
		editResource(t, other.bench, func(row map[string]types.AttributeValue) {
			for name := range row {
				if strings.HasPrefix(name, "o_") {
					t.Errorf("%s is left", name)
				}
			}
		})
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
	b.audit(t)
	if n := []int{all[0].LocalQueues(), all[1].LocalQueues()}; !slices.Equal(n, []int{0, 0}) {
		t.Errorf("%d lines are left of nobody", n)
	}
}

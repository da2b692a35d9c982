package lockedread_test

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
	"github.com/dynahold/dynahold/lockedread"
)

// inVirtualTime runs a test in virtual time, on the real engine.
func inVirtualTime(t *testing.T, run func(t *testing.T, network fault.Doer)) {
	rig.InVirtualTime(t, 16, run)
}

// within is the bench behind a network, as in virtual time.
func (b bench) within(network fault.Doer) bench {
	return bench{&rig.Rig{Table: b.Table, Client: rig.Client(rig.Over(network))}}
}

// over is a locker with a network of its own.
func (b bench) over(t *testing.T, network fault.Doer, cfg lockedread.Config) *lockedread.Locker[stock] {
	return b.within(network).locker(t, cfg)
}

// killed is a process in virtual time with some workers that change the item.
type killed struct {
	net  *rig.Mortal
	stop context.CancelFunc
}

func (k killed) kill() { k.net.Dead.Store(true); k.stop() }

// start starts one; it counts the changes that were acknowledged while it lived.
func (b bench) start(t *testing.T, network fault.Doer, cfg lockedread.Config, workers int, all *sync.WaitGroup, changes *atomic.Int64) killed {
	ctx, stop := context.WithCancel(t.Context())
	k := killed{&rig.Mortal{Next: network, Latency: 2 * time.Millisecond}, stop}
	l := b.over(t, k.net, cfg)
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				_, err := l.Update(ctx, key, func(ctx context.Context, s *stock) error {
					time.Sleep(5 * time.Millisecond)
					s.Count++
					return nil
				})
				if err == nil && !k.net.Dead.Load() {
					changes.Add(1)
				}
			}
		})
	}
	return k
}

// TestFairAmongTheKilled: every fifth of a second one of three processes is
// killed, so that the queue on the item is full of the dead.
func TestFairAmongTheKilled(t *testing.T) {
	span := rig.Share(8*time.Second, 60*time.Second)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	made := map[bool]int64{}
	for _, fair := range []bool{false, true} {
		b := newBench(t)
		cfg := lockedread.Config{Fair: fair, Lease: time.Second, ClockSkew: time.Millisecond}
		var changes atomic.Int64
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			rng := rand.New(rand.NewPCG(seed, 1)) // repeatable on purpose
			var all sync.WaitGroup
			var running [3]killed
			for i := range running {
				running[i] = b.start(t, network, cfg, 4, &all, &changes)
			}
			for began := time.Now(); time.Since(began) < span; {
				time.Sleep(time.Duration(150+rng.IntN(100)) * time.Millisecond)
				i := rng.IntN(len(running))
				running[i].kill()
				running[i] = b.start(t, network, cfg, 4, &all, &changes)
			}
			for _, k := range running {
				k.kill()
			}
			all.Wait()
		})
		made[fair] = changes.Load()
	}
	t.Logf("%v of virtual time: %d changes, %d without Fair", span, made[true], made[false])
	// A change takes 9 ms. Each of some sixty deaths leaves four entries in the queue, and
	// what is lost to each one of them must not be a grace of a second.
	if least := int64(4 * span / time.Second); made[true] < least {
		t.Errorf("%d changes, want at least %d: the dead in the queue cost too much", made[true], least)
	}
}

// TestFairOneLostClaim: where one that says how long a lock is needed is lost, or one that
// takes over, the lock goes on within two graces (of a second), and not after the time-out
// of a request. Other messages: internal/suite/fair.
func TestFairOneLostClaim(t *testing.T) {
	cfg := lockedread.Config{Fair: true} // a lease of 30 s, a second of grace
	const claim, takeover = "SET #lockTime = :until, #lockLease = :lease", "REMOVE #"
	first := func(op, text string, arrives bool) func(string, string) (bool, bool) {
		var once atomic.Bool
		return func(o, body string) (before, after bool) {
			lost := o == op && strings.Contains(body, text) && once.CompareAndSwap(false, true)
			return lost && !arrives, lost && arrives
		}
	}
	for name, c := range map[string]struct {
		lost  func(string, string) (bool, bool) // of the waiter
		dead  bool                              // the holder dies
		work  time.Duration                     // of the change
		limit time.Duration                     // from when the lock is free, or may be taken
	}{
		"a claim":                  {first("UpdateItem", claim, false), false, 10 * time.Second, 12 * time.Second},
		"the answer to a claim":    {first("UpdateItem", claim, true), false, 10 * time.Second, 12 * time.Second},
		"a takeover":               {first("UpdateItem", takeover, false), true, 0, 2 * time.Second},
		"the answer to a takeover": {first("UpdateItem", takeover, true), true, 0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				mine := &rig.Mortal{Next: network}
				held := acquire(t, b.over(t, mine, cfg))
				told := make(chan error)
				waiter := b.over(t, &rig.Mortal{Next: network, Lost: c.lost, Latency: time.Millisecond}, cfg)
				go func() {
					_, err := waiter.Update(t.Context(), key, func(_ context.Context, s *stock) error {
						time.Sleep(c.work)
						s.Count++
						return nil
					})
					told <- err
				}()
				time.Sleep(5 * time.Millisecond) // in virtual time: it has drawn, or lost its draw
				from := time.Now()
				if c.dead {
					mine.Dead.Store(true)
					from = from.Add(30 * time.Second)
				} else {
					rig.Is(t, held.Release(t.Context()))
				}
				rig.Is(t, <-told)
				if took := time.Since(from); took > c.limit {
					t.Errorf("served after %v", took)
				}
			})
			wantCount(t, b, 11)
			wantClean(t, b)
		})
	}
}

// TestFairOrderAfterTheDead: many who died in the queue cost hardly more than
// one, and those who are alive are served in their order.
func TestFairOrderAfterTheDead(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]lockedread.Config{"clocks": {Fair: true}, "no clock": {Fair: true, Clockless: true}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				held := acquire(t, b.over(t, network, cfg))
				var all sync.WaitGroup
				var dead []*rig.Mortal
				var order []string // guarded by the lock under test
				var last time.Time // guarded by the lock under test
				alive := ""
				for i, kind := range "xxxxaxbcxxdxe" {
					net := &rig.Mortal{Next: network, Latency: 3 * time.Millisecond}
					ctx, l := t.Context(), b.over(t, net, cfg)
					if kind == 'x' {
						dead = append(dead, net)
					} else {
						alive += string(kind)
					}
					all.Go(func() {
						_, err := l.Update(ctx, key, func(ctx context.Context, s *stock) error {
							order, last = append(order, string(kind)), time.Now()
							return addOne(ctx, s)
						})
						if kind != 'x' {
							rig.Is(t, err)
						}
					})
					time.Sleep(time.Duration(7*i) * time.Millisecond) // in virtual time: it has drawn, and looks in a rhythm of its own
				}
				for _, net := range dead {
					net.Dead.Store(true)
				}
				from := time.Now()
				rig.Is(t, held.Release(t.Context()))
				all.Wait()
				rig.Equal(t, strings.Join(order, ""), alive, "served")
				// Four rows of the dead, each a grace, the time between two looks, and an
				// eighth of a grace for each one in it.
				if took, most := last.Sub(from), 4*(time.Second+time.Second/3)+8*time.Second/8+100*time.Millisecond; took > most {
					t.Errorf("the last one after %v, want at most %v", took, most)
				}
			})
			wantClean(t, b)
		})
	}
}

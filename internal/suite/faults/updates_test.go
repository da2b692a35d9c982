package faults_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

var roundsFlag = flag.Int("rounds", 0, "rounds of the faulted runs; 0: a quick share")

// faultRate is the share of the requests that are lost, resent, delayed,
// truncated, throttled, emptied or broken.
const faultRate = 0.25

// faultStrategies are the suite's strategies with short leases, so that a lock
// whose release got lost does not hold up the run.
func faultStrategies() []fixture.Strategy {
	short := pessimistic.Config{Lease: 2 * time.Second, Renew: true, ClockSkew: time.Millisecond}
	locking := func(name string, change func(*pessimistic.Config)) fixture.Strategy {
		cfg := short
		change(&cfg)
		return fixture.Strategy{Name: name, Open: func(t testing.TB, w *fixture.Fixture, c repo.Client) repo.Repository[fixture.Account] {
			return rig.Must(pessimistic.New(w.Items(t, c), cfg))(t)
		}, Combines: cfg.Combine}
	}
	all := slices.DeleteFunc(fixture.Strategies(), func(s fixture.Strategy) bool { return strings.HasPrefix(s.Name, "pessimistic") })
	return append(all,
		locking("pessimistic, racing", func(c *pessimistic.Config) { c.Race = true }),
		locking("pessimistic, racing, clockless", func(c *pessimistic.Config) { c.Race, c.Clockless = true, true }),
		locking("pessimistic, racing, combining", func(c *pessimistic.Config) { c.Race, c.Combine = true, true }),
		locking("pessimistic", func(*pessimistic.Config) {}),
		locking("pessimistic, clockless, combining", func(c *pessimistic.Config) { c.Combine, c.Clockless = true, true }))
}

// truth compares verdicts with what is in the item.
type truth struct {
	mu       sync.Mutex
	verdicts map[string]error // by operation
	wrong    int
	unknown  int
}

func (v *truth) record(id string, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.verdicts[id] = err
}

// check returns what each operation's verdict should have been, as errors.
func (v *truth) check(t *testing.T, ops []string) {
	t.Helper()
	times := map[string]int{}
	for _, id := range ops {
		times[id]++
	}
	for id, err := range v.verdicts {
		n := times[id]
		switch {
		case n > 1:
			t.Errorf("%s was applied %d times", id, n)
		case err == nil && n == 0:
			t.Errorf("%s was acknowledged and is lost", id)
		case errors.Is(err, repo.ErrOutcomeUnknown):
			v.unknown++
			continue
		case err != nil && n == 1:
			t.Errorf("%s was applied but reported as %v", id, err)
		default:
			continue
		}
		v.wrong++
	}
}

// TestFaultedUpdatesEndInTrueVerdicts is the promise of the library under every
// fault that a network and a service can produce.
func TestFaultedUpdatesEndInTrueVerdicts(t *testing.T) {
	all := faultStrategies()
	mix := fixture.Strategy{Name: "all mixed"}
	var mu sync.Mutex // guards what follows
	total := map[fault.Kind]int{}
	var wrong, unknown, verdicts int
	for _, s := range append(all, mix) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel() // it waits for leases much of the time
			for round := range max(1, *roundsFlag) {
				base := fixture.Seed(t) + uint64(round)
				w := fixture.New(t)
				key := repo.Key{Partition: "p", Sort: 1}
				rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
				v := &truth{verdicts: map[string]error{}}
				// A process of four callers, and four of one. No more than the ring of
				// writers has places: a request that the network delivers twice
				// within one attempt is judged by it.
				const workers = 8
				each := rig.Share(8, 25)
				if *roundsFlag > 0 {
					each = 25
				}
				var injectors []*fault.Injector
				var done sync.WaitGroup
				var r repo.Repository[fixture.Account]
				for i := range workers {
					if i == 0 || i > 3 {
						client, in := rig.Faulty(base*workers+uint64(i), faultRate)
						injectors = append(injectors, in)
						how := s
						if how.Open == nil {
							how = all[(i+round)%len(all)]
						}
						// Of those of one caller, three have wrapped clients, whose SDK
						// repeats out of sight.
						r = how.Open(t, w, client)
						if ways := []string{"options dropped", "a retryer of its own", "a transport of its own"}; i > 4 {
							r = how.Open(t, w, rig.Wrappings(client)[ways[i-5]])
						}
					}
					r := r
					done.Go(func() {
						for j := range each {
							id := fmt.Sprintf("%d-%d", i, j)
							_, err := r.Update(t.Context(), key, func(_ context.Context, a *fixture.Account) error {
								a.Ops = append(a.Ops, id)
								return nil
							})
							v.record(id, err)
						}
					})
				}
				done.Wait()
				for _, in := range injectors {
					in.Wait()
				}
				v.check(t, rig.Must(w.Items(t, w.Client).Get(t.Context(), key))(t).Ops)
				mu.Lock()
				for _, in := range injectors {
					for k, n := range in.Counts() {
						total[k] += n
					}
				}
				wrong, unknown, verdicts = wrong+v.wrong, unknown+v.unknown, verdicts+len(v.verdicts)
				mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { // when all have ended
		requests, faults := 0, 0
		var kinds []string
		for _, k := range append(fault.AllKinds(), fault.None) {
			requests += total[k]
			if k != fault.None {
				faults += total[k]
				kinds = append(kinds, fmt.Sprintf("%v %d", k, total[k]))
			}
		}
		t.Logf("%d requests, %d faults (%s), %d verdicts, %d wrong, %d unknown", requests, faults, strings.Join(kinds, ", "), verdicts, wrong, unknown)
	})
}

// TestFaultedEventsEndInTrueVerdicts: events in any order, twice, under faults.
func TestFaultedEventsEndInTrueVerdicts(t *testing.T) {
	t.Parallel()
	base := fixture.Seed(t)
	w := fixture.New(t)
	var mu sync.Mutex
	var done sync.WaitGroup
	type outcome struct {
		at  int64
		err error
	}
	var outcomes []outcome
	for i := range 8 {
		client, in := rig.Faulty(base+uint64(i), faultRate)
		r := rig.Must(nolock.New(w.Items(t, client), nolock.Config{}))(t)
		rng := rand.New(rand.NewPCG(base, uint64(i))) // repeatable on purpose
		done.Go(func() {
			for range 60 {
				at := 1 + rng.Int64N(1000)
				err := r.Put(t.Context(), fixture.Account{ID: "p", Seq: 1, At: at, Balance: at * 10})
				mu.Lock()
				outcomes = append(outcomes, outcome{at, err})
				mu.Unlock()
			}
			in.Wait()
		})
	}
	done.Wait()
	got := rig.Must(w.Items(t, w.Client).Get(t.Context(), repo.Key{Partition: "p", Sort: 1}))(t)
	rig.Equal(t, got.Balance, got.At*10, "item is a mixture of events: %+v", got)
	newest := int64(0)
	for _, o := range outcomes {
		switch {
		case o.err == nil && o.at > got.At:
			t.Errorf("event %d was acknowledged, but the item is at %d", o.at, got.At)
		case errors.Is(o.err, repo.ErrStale) && o.at >= got.At:
			t.Errorf("event %d was called stale, but the item is at %d", o.at, got.At)
		}
		if o.err == nil || errors.Is(o.err, repo.ErrOutcomeUnknown) {
			newest = max(newest, o.at)
		}
	}
	if got.At > newest {
		t.Errorf("the item is at %d, which nobody wrote for sure (newest %d)", got.At, newest)
	}
}

// TestFaultedHandles: acquire, extend, commit and release by hand under faults.
func TestFaultedHandles(t *testing.T) {
	t.Parallel()
	base := fixture.Seed(t)
	w := fixture.New(t)
	key := repo.Key{Partition: "p", Sort: 1}
	rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	v := &truth{verdicts: map[string]error{}}
	var done sync.WaitGroup
	for i := range 6 {
		client, in := rig.Faulty(base+uint64(i), faultRate)
		l := w.Locker(t, client, lockedread.Config{Lease: 2 * time.Second, ClockSkew: 200 * time.Millisecond})
		done.Go(func() {
			defer in.Wait()
			last := int64(0)
			for j := range 20 {
				id := fmt.Sprintf("%d-%d", i, j)
				h, err := l.Acquire(t.Context(), key)
				if err != nil {
					v.record(id, err)
					continue
				}
				if h.Token() <= last {
					t.Errorf("token %d after %d", h.Token(), last)
				}
				last = h.Token()
				if j%3 == 0 {
					_ = h.Extend(t.Context()) // its failure shows in the commit
				}
				item := h.Item()
				item.Ops = append(item.Ops, id)
				if j%5 == 4 {
					err = h.Release(t.Context())
					if err == nil {
						err = errors.New("released without a change")
					}
				} else {
					_, err = h.Commit(t.Context(), item)
				}
				v.record(id, err)
				_ = h.Release(t.Context())
			}
		})
	}
	done.Wait()
	v.check(t, rig.Must(w.Items(t, w.Client).Get(t.Context(), key))(t).Ops)
}

package once_test

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
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// Messages, each delivered four times, to processes of every strategy on one item,
// over a network that loses answers: the item is changed once by each, and a call
// that ended unknown ends known when it is repeated with its id.
func TestMessageStorm(t *testing.T) {
	b := rig.New(t)
	messages := rig.Share(60, 300)
	const deliveries, workers = 4, 3
	plain := rig.Must(repo.NewTable[product](b.Client, b.Table, repo.TableConfig{}))(t)
	rig.Is(t, plain.EnsureTable(t.Context()))
	_, r := strategies["optimistic"](t, plain, lease)
	rig.Must(r.Create(t.Context(), product{SKU: "apple", Stock: messages}))(t)
	// In the middle of the storm the item goes over to rows beside it.
	s := &store{Rig: b, table: plain, plain: r}
	s.filled(t, 100)
	s.stocked(t, messages)

	var queue []string
	for m := range messages {
		for range deliveries {
			queue = append(queue, fmt.Sprint("message ", m))
		}
	}
	seed := fixture.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 2))
	rng.Shuffle(len(queue), func(i, j int) { queue[i], queue[j] = queue[j], queue[i] })
	arriving := make(chan string, len(queue))
	for _, m := range queue {
		arriving <- m
	}
	close(arriving)

	var unknown, repeated, failed atomic.Int64
	var injectors []*fault.Injector
	var all sync.WaitGroup
	for name, open := range strategies {
		seed++
		client, in := rig.Faulty(seed, 0.2, fault.LoseResponse, fault.DropRequest, fault.Error500After, fault.Resend, fault.LateDuplicate, fault.Throttle)
		injectors = append(injectors, in)
		once, _ := open(t, rig.Must(repo.NewTable[product](client, b.Table, repo.TableConfig{}))(t), shortLease)
		for w := range workers {
			all.Go(func() {
				for m := range arriving {
					call := [...]string{"Update", "Apply", "Upsert"}[w%3]
					doubt := false
					for {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						v := once(m)
						_, err := taking[call](ctx, v)
						cancel()
						if err == nil {
							if v.Repeated() {
								repeated.Add(1)
							}
							break
						}
						if doubt = errors.Is(err, repo.ErrOutcomeUnknown); doubt {
							unknown.Add(1)
						} else if failed.Add(1) > int64(messages) {
							t.Errorf("%s, %s: %v", name, call, err)
							return
						}
					}
				}
			})
		}
	}
	all.Wait()
	faults, requests := 0, 0
	for _, in := range injectors {
		in.Wait()
		faults += in.Faulted()
		requests += in.Requests()
	}
	if got := rig.Must(plain.Get(t.Context(), key))(t); got.Stock != 0 {
		t.Errorf("stock %d after %d messages", got.Stock, messages)
	}
	t.Logf("%d requests, %d faults, %d unknown, %d failed, %d repetitions", requests, faults, unknown.Load(), failed.Load(), repeated.Load())
}

// Copies of a message in one process, which stand in one group: each is made once,
// with one write for all of them.
func TestCopiesInOneGroup(t *testing.T) {
	for _, name := range []string{"optimistic, combining", "pessimistic, combining", "optimistic, fair"} {
		t.Run(name, func(t *testing.T) {
			s := &store{Rig: rig.New(t)}
			s.table = rig.Must(repo.NewTable[product](s.Client, s.Table, repo.TableConfig{}))(t)
			rig.Is(t, s.table.EnsureTable(t.Context()))
			s.once, s.plain = strategies[name](t, s.table, lease)
			rig.Must(s.plain.Create(t.Context(), product{SKU: "apple", Stock: 10}))(t)
			gate, began := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			var repeated atomic.Int64
			all.Go(func() { // holds the item while the others gather
				rig.Must(s.once("first").Update(t.Context(), key, func(ctx context.Context, p *product) error {
					close(began)
					<-gate
					return take(ctx, p)
				}))(t)
			})
			<-began
			var sent sync.WaitGroup
			for i := range 12 {
				sent.Add(1)
				all.Go(func() {
					v := s.once(fmt.Sprint("message ", i%3))
					sent.Done()
					rig.Must(v.Update(t.Context(), key, take))(t)
					if v.Repeated() {
						repeated.Add(1)
					}
				})
			}
			sent.Wait()
			close(gate)
			all.Wait()
			if s.stock(t) != 10-1-3 || repeated.Load() != 9 {
				t.Errorf("stock %d, %d repetitions", s.stock(t), repeated.Load())
			}
		})
	}
}

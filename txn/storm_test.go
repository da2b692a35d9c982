package txn_test

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
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// Messages, each delivered three times, to processes over a network that loses
// answers. Each takes from one item and gives to two more, of all strategies: what is
// taken and given is that of each message, once.
func TestMessageStorm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accounts := w.accounts()
	for _, a := range accounts {
		rig.Is(t, w.stores[a.kind].create(t.Context(), a.id, 0))
	}
	messages := rig.Share(25, 300)
	const deliveries, processes = 3, 4
	rng := rand.New(rand.NewPCG(1, 2)) // repeatable on purpose
	want := make([]int, len(accounts))
	var from, to, third []int
	arriving := make(chan int, messages*deliveries)
	for m := range messages {
		picked := rng.Perm(len(accounts))
		from, to, third = append(from, picked[0]), append(to, picked[1]), append(third, picked[2])
		want[picked[0]] -= m
		want[picked[1]] += m
		want[picked[2]]++
	}
	for _, i := range rng.Perm(messages * deliveries) {
		arriving <- i / deliveries
	}
	close(arriving)
	var unknown, repeated, failed atomic.Int64
	var all sync.WaitGroup
	for p := range processes {
		// A copy of a request for a lock that arrives late leaves a hold without a holder,
		// for a lease: a short one, and whoever loses a lock by it tries again.
		peer := openLeased(t, w.Peer(), false, shortLease)
		kinds := []fault.Kind{fault.LoseResponse, fault.DropRequest, fault.Error500After, fault.Resend, fault.LateDuplicate, fault.Throttle, fault.TransactionConflict}
		var mu sync.Mutex
		dice := rand.New(rand.NewPCG(uint64(p), 3))
		peer.Faults(func(string, int, []byte) fault.Kind {
			mu.Lock()
			defer mu.Unlock()
			if dice.Float64() < 0.15 {
				return kinds[dice.IntN(len(kinds))]
			}
			return fault.None
		})
		all.Go(func() {
			defer peer.Net.Wait()
			for m := range arriving {
				for {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					o := txn.Once(fmt.Sprint(w.suffix, m))
					err := o.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
						for i, n := range map[int]int{from[m]: -m, to[m]: m, third[m]: 1} {
							if err := peer.stores[accounts[i].kind].in(tx).add(ctx, accounts[i].id, n); err != nil {
								return err
							}
						}
						return nil
					})
					cancel()
					if err == nil {
						if o.Repeated() {
							repeated.Add(1)
						}
						break
					}
					if errors.Is(err, repo.ErrOutcomeUnknown) {
						unknown.Add(1)
					} else if failed.Add(1) > int64(10*messages) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	all.Wait()
	for i, a := range accounts {
		n, err := w.stores[a.kind].get(t.Context(), a.id)
		rig.Is(t, err)
		rig.Equal(t, n, want[i], "%v has", a)
	}
	t.Logf("%d repeated, %d unknown, %d failed", repeated.Load(), unknown.Load(), failed.Load())
}

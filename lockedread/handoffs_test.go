package lockedread_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// A lock goes from caller to caller of a process a number of times, and is then let go:
// sooner where other processes want the item, and later again where those stand in a queue.
func TestHowOftenALockStaysInItsProcess(t *testing.T) {
	for _, c := range []struct {
		name             string
		cfg              lockedread.Config
		others           bool
		callers, letting int // what is written beside one commit for each: to have the lock
	}{
		{"alone", lockedread.Config{Race: true}, false, 34, 2},
		{"alone, fair", lockedread.Config{Fair: true}, false, 34, 2},
		{"others want it", lockedread.Config{Race: true}, true, 11, 3},
		{"others stand in a queue", lockedread.Config{Fair: true}, true, 19, 2}, // the first one's place was taken before
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				count := fault.NewCounter(network)
				l := rig.Must(lockedread.New(rig.Must(repo.NewTable[stock](rig.Client(rig.Over(count)), b.Table, repo.TableConfig{}))(t), c.cfg))(t)
				other := b.over(t, network, c.cfg)
				first := other
				if !c.others {
					first = l
				}
				held := rig.Must(first.Acquire(t.Context(), key))(t)
				var all sync.WaitGroup
				for range c.callers {
					all.Go(func() {
						_, err := l.Update(t.Context(), key, addOne)
						rig.Is(t, err)
					})
					synctest.Wait()
				}
				count.Reset()
				rig.Is(t, held.Release(t.Context()))
				all.Wait()
				if got := count.Count("UpdateItem"); got != c.callers+c.letting {
					t.Errorf("%d writes for %d changes, want %d more", got, c.callers, c.letting)
				}
			})
			wantCount(t, b, 10+c.callers)
			wantClean(t, b)
		})
	}
}

// Callers that come back while the changes of their group run are always waiting. In a
// queue their changes count, not their groups: else others would wait for as many groups
// as the lock is handed on, each with the work of all of them.
func TestGroupsGiveTheQueueItsTurn(t *testing.T) {
	const callers, work, most = 8, 20 * time.Millisecond, 16 // those that may be handed on, and one group more
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		cfg := lockedread.Config{Combine: true}
		slow := func(net fault.Doer) *lockedread.Locker[stock] {
			return b.over(t, &rig.Mortal{Next: net, Latency: 2 * time.Millisecond}, cfg)
		}
		var own, turns atomic.Int64 // changes of the group, and turns of the other
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		group, other := slow(network), slow(network)
		for range callers {
			all.Go(func() {
				for ctx.Err() == nil {
					_, err := group.Update(t.Context(), key, func(_ context.Context, s *stock) error {
						time.Sleep(work) // in virtual time
						s.Count++
						return nil
					})
					rig.Is(t, err)
					own.Add(1)
				}
			})
		}
		for turns.Load() < 8 {
			before := own.Load()
			_, err := other.Update(t.Context(), key, addOne)
			rig.Is(t, err)
			if n := own.Load() - before; turns.Load() > 0 && n > most {
				t.Errorf("turn %d: %d changes of the group before it, want at most %d", turns.Load(), n, most)
			}
			turns.Add(1)
		}
		stop()
		all.Wait()
	})
	wantClean(t, b)
}

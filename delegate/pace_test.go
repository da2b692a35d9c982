package delegate_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
)

// While mail keeps coming the leader carries out the commands of its own callers, too: they
// would else wait for as long as that lasts.
func TestProcessesGetTheSame(t *testing.T) {
	t.Parallel()
	b, _ := withList(t)
	const processes, callers, span = 4, 4, 500 * time.Millisecond
	var got [processes]int
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond})), b.Table)
			for c := range callers {
				all.Go(func() {
					for i, began := 0, time.Now(); time.Since(began) < span; i++ {
						_, err := p.add.Do(context.Background(), key, fmt.Sprintf("%d-%d-%d.", n, c, i))
						rig.Is(t, err)
						mu.Lock()
						got[n]++
						mu.Unlock()
					}
				})
			}
			t.Cleanup(func() { rig.Is(t, p.all.Close(context.Background())) })
		}
		all.Wait()
	})
	if least, most := slices.Min(got[:]), slices.Max(got[:]); 4*least < 3*most {
		t.Errorf("processes got %v", got)
	}
}

// A write whose answer is late goes out once more, and a look for mail has another beside it:
// where requests are met with silence, before or after they have arrived, the
// others do not wait for that, and nothing is applied twice.
func TestSilenceHoldsUpNothing(t *testing.T) {
	t.Parallel()
	b, first := withList(t)
	const processes, each = 6, 40
	seen := newAudit()
	var took time.Duration
	var rounds, posts, looks, silent atomic.Int64
	lost := func(op, body string) (before, after bool) {
		n := int64(0)
		switch {
		case op == "Query":
			n = looks.Add(1)
		case op == "UpdateItem" && strings.Contains(body, `"lead"`):
			n = rounds.Add(1)
		case strings.Contains(body, "mailItem"):
			n = posts.Add(1)
		}
		if n%25 != 24 {
			return false, false
		}
		silent.Add(1)
		return n%50 == 24, n%50 != 24
	}
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		began := time.Now()
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(&rig.Mortal{Next: network, Latency: 2 * time.Millisecond, Lost: lost})), b.Table)
			all.Go(func() {
				for i := range each {
					op := fmt.Sprintf("%d-%d", n, i)
					_, err := p.add.Do(context.Background(), key, op)
					seen.record(op, err)
				}
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		all.Wait()
		took = time.Since(began)
	})
	got := rig.Must(first.items.Get(t.Context(), key))(t)
	seen.check(t, got.Ops)
	t.Logf("%v, %d rounds, %d posts, %d looks, %d of them met with silence", took, rounds.Load(), posts.Load(), looks.Load(), silent.Load())
	if most := each * 60 * time.Millisecond; took > most || silent.Load() < 10 {
		t.Errorf("%d changes of each took %v, more than %v, or %d silences are few", each, took, most, silent.Load())
	}
}

// Rows whose mail is served lie in their partition for hours. They are no reason to look again
// without a pause: it costs queries, and where requests take no time, no time passes.
func TestServedRowsAreNothingFound(t *testing.T) {
	t.Parallel()
	b, _ := withList(t)
	const processes, each, most = 4, 10, 1500
	var looks, rounds atomic.Int64
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		net := &rig.Mortal{Next: network}
		net.Lost = func(op, body string) (before, after bool) {
			switch {
			case op == "Query" && looks.Add(1) > most:
				net.Dead.Store(true) // else it would never end
			case strings.Contains(body, `"lead"`):
				rounds.Add(1)
			}
			return false, false
		}
		var all sync.WaitGroup
		for n := range processes {
			p := start(t, rig.Client(rig.Over(net)), b.Table)
			all.Go(func() {
				for i := range each {
					_, err := p.add.Do(context.Background(), key, fmt.Sprintf("%d-%d.", n, i))
					rig.Is(t, err)
				}
				time.Sleep(time.Second) // who leads ends by itself
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		all.Wait()
	})
	t.Logf("%d looks, %d rounds", looks.Load(), rounds.Load())
	if looks.Load() > most || rounds.Load() == 0 {
		t.Errorf("%d looks for mail, %d rounds", looks.Load(), rounds.Load())
	}
}

// Where the item has no room for the answers to a mail, its sender carries that out itself: the
// leader would write the whole item again and again, and serve nobody.
func TestAnItemWithoutRoomForAnswers(t *testing.T) {
	t.Parallel()
	b, first := withList(t, strings.Repeat("x", 397<<10))
	const processes, each = 4, 3
	var rounds atomic.Int64
	b.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		var all sync.WaitGroup
		for n := range processes {
			net := &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}
			net.Lost = func(op, body string) (before, after bool) {
				if op == "UpdateItem" && strings.Contains(body, `"lead"`) && rounds.Add(1) > 20*processes*each {
					net.Dead.Store(true) // else it would take minutes
				}
				return false, false
			}
			p := start(t, rig.Client(rig.Over(net)), b.Table)
			wide := p.wide(t)
			all.Go(func() {
				for i := range each {
					op := fmt.Sprint(n, "-", i)
					got, err := wide.Do(context.Background(), key, op)
					if rig.Is(t, err); !strings.HasPrefix(got, op+"x") {
						t.Errorf("%s has the result %.10s", op, got)
					}
				}
				rig.Is(t, p.all.Close(context.Background()))
			})
		}
		all.Wait()
	})
	if n := rounds.Load(); n > 4*processes*each {
		t.Errorf("%d writes of leaders for %d commands", n, processes*each)
	}
	rig.Equal(t, len(rig.Must(first.items.Get(t.Context(), key))(t).Ops), 1+processes*each, "operations")
}

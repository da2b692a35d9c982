package local_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/local"
)

type lines = local.Queues[string, int]

const forever = time.Hour

// hold waits for the turn.
func hold(t *testing.T, p *local.Waiter[string, int]) {
	t.Helper()
	if s, err := p.Wait(context.Background(), forever); s != local.Holding || err != nil {
		t.Fatalf("state %v, error %v, want the turn", s, err)
	}
}

func all(string) bool { return true }

func TestOrderOfArrivalAndWhatIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		first := l.Join("k", "0")
		hold(t, first)
		var order []string
		var mu sync.Mutex
		var done sync.WaitGroup
		for i := range 5 {
			p := l.Join("k", strconv.Itoa(i+1))
			done.Go(func() {
				hold(t, p)
				mu.Lock()
				order = append(order, p.Caller+":"+strconv.Itoa(p.Handoff()))
				mu.Unlock()
				p.Pass(p.Handoff() + 1)
			})
		}
		synctest.Wait()
		if n := first.Waiting(); n != 5 {
			t.Errorf("%d wait, want 5", n)
		}
		if !first.Pass(10) {
			t.Error("nobody took the turn")
		}
		done.Wait()
		if got := len(order); got != 5 || order[0] != "1:10" || order[4] != "5:14" {
			t.Errorf("order %v", order)
		}
		if l.Keys() != 0 {
			t.Errorf("%d lines are left behind", l.Keys())
		}
	})
}

func TestOneVoicePerKeyUnderCancellation(t *testing.T) {
	var l lines
	var inside [3]atomic.Int32
	var got, left, drawn atomic.Int64
	var callers sync.WaitGroup
	for i := range 200 {
		rng := rand.New(rand.NewPCG(1, uint64(i))) // repeatable on purpose
		callers.Go(func() {
			for range 50 {
				k := rng.IntN(len(inside))
				ctx, cancel := context.WithCancel(context.Background())
				if rng.IntN(3) == 0 {
					go cancel() // at any moment
				}
				p := l.Join(strconv.Itoa(k), "")
				switch s, err := p.Wait(ctx, forever); {
				case err != nil:
					left.Add(1)
				case s == local.Drawn:
					drawn.Add(1)
				default:
					if inside[k].Add(1) != 1 {
						t.Error("two have the turn")
					}
					runtime.Gosched() // others come and wait
					if rng.IntN(4) == 0 {
						p.Draw(all)
					}
					inside[k].Add(-1)
					p.Pass(0)
					got.Add(1)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if l.Keys() != 0 {
		t.Errorf("%d lines are left behind", l.Keys())
	}
	if n := got.Load() + left.Load() + drawn.Load(); n != 200*50 || drawn.Load() == 0 || left.Load() == 0 {
		t.Errorf("%d had the turn, %d left, %d were taken along: %d in all", got.Load(), left.Load(), drawn.Load(), n)
	}
}

func TestWhoLeavesHarmsNobodyBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		a := l.Join("k", "a")
		hold(t, a)
		b, c := l.Join("k", "b"), l.Join("k", "c")
		ctx, cancel := context.WithCancelCause(context.Background())
		mine := errors.New("mine")
		cancel(mine)
		if _, err := b.Wait(ctx, forever); !errors.Is(err, mine) {
			t.Errorf("error %v, want the context's cause", err)
		}
		a.Pass(7)
		hold(t, c)
		if c.Handoff() != 7 {
			t.Errorf("handoff %d, want 7", c.Handoff())
		}
		// Given the turn and cancelled in one moment: it has it, and must pass it on.
		d := l.Join("k", "d")
		c.Pass(8)
		if s, err := d.Wait(ctx, forever); s != local.Holding || err != nil {
			t.Errorf("state %v, error %v, want the turn", s, err)
		}
		if d.Pass(9) || l.Keys() != 0 {
			t.Error("a line is left behind")
		}
	})
}

func TestWhoDoesNotMoveIsOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		slow := l.Join("k", "slow")
		hold(t, slow)
		slow.Show(3)
		next, behind := l.Join("k", "next"), l.Join("k", "behind")
		if next.Seen() != 3 {
			t.Errorf("shows %d, want 3", next.Seen())
		}
		began := time.Now()
		s, err := next.Wait(t.Context(), time.Second)
		if s != local.Holding || err != nil || time.Since(began) != time.Second || next.Handoff() != 0 {
			t.Errorf("state %v, error %v, after %v, with %d: want a turn of its own after 1 s", s, err, time.Since(began), next.Handoff())
		}
		if slow.Waiting() != 0 || slow.Draw(all) != nil || slow.Pass(4) {
			t.Error("the overtaken one still rules the line")
		}
		next.Pass(5)
		hold(t, behind)
		if behind.Handoff() != 5 {
			t.Errorf("handoff %d, want 5", behind.Handoff())
		}
		behind.Pass(0)
		if l.Keys() != 0 {
			t.Error("a line is left behind")
		}
	})
}

// In a line of thousands nobody looks at the holder but the first: looks of all would
// cost more than what they wait for. The one who comes after it does so in its place.
func TestOnlyTheFirstLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		l := lines{Look: time.Second, Over: func(int) bool { looks.Add(1); return false }}
		h := l.Join("k", "h")
		hold(t, h)
		ctx, leave := context.WithCancel(t.Context())
		began, took := time.Now(), make([]time.Duration, 100)
		var waiters sync.WaitGroup
		for i := range took {
			ctx := ctx
			if i > 0 {
				ctx = t.Context()
			}
			p := l.Join("k", "waiter")
			waiters.Go(func() {
				if s, _ := p.Wait(ctx, 20*time.Second); s == local.Holding {
					took[i] = time.Since(began)
				}
			})
			synctest.Wait()
		}
		time.Sleep(10500 * time.Millisecond)
		if n := looks.Load(); n > 12 {
			t.Errorf("%d looks of 100 who wait, in ten times the time between two", n)
		}
		leave() // the second is now the first, and overtakes when the holder's time is over
		waiters.Wait()
		for i := 1; i < len(took); i++ {
			if took[i] != time.Duration(i)*20*time.Second {
				t.Fatalf("waiter %d had its turn after %v", i, took[i])
			}
		}
	})
}

func TestPatienceCountsFromTheLastMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		h := l.Join("k", "h")
		hold(t, h)
		l.Join("k", "drawn")
		waiter := l.Join("k", "waiter")
		time.Sleep(900 * time.Millisecond)
		h.Draw(all) // who takes others along moves
		time.Sleep(700 * time.Millisecond)
		began := time.Now()
		if s, _ := waiter.Wait(t.Context(), time.Second); s != local.Holding || time.Since(began) != 300*time.Millisecond {
			t.Errorf("waited %v, want the rest of a second", time.Since(began))
		}
	})
}

// Who waits already when the one before it is taken along looks from then on.
func TestWhoComesFirstByADrawLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lines
		h := l.Join("k", "h")
		hold(t, h)
		l.Join("k", "drawn")
		began, waiter := time.Now(), l.Join("k", "waiter")
		var waits sync.WaitGroup
		waits.Go(func() {
			if s, _ := waiter.Wait(t.Context(), time.Second); s != local.Holding || time.Since(began) != 1900*time.Millisecond {
				t.Errorf("waited %v, want a second from the draw", time.Since(began))
			}
		})
		time.Sleep(900 * time.Millisecond)
		h.Draw(all)
		waits.Wait()
	})
}

func TestDrawnInOrder(t *testing.T) {
	var l lines
	h := l.Join("k", "h")
	hold(t, h)
	a, b, c := l.Join("k", "a"), l.Join("k", "b"), l.Join("k", "c")
	wanted := func(s string) bool { return s != "c" }
	if h.Draw(wanted) != a || h.Draw(wanted) != b || h.Draw(wanted) != nil {
		t.Error("not drawn in order, or one that was not wanted")
	}
	if s, err := a.Wait(t.Context(), forever); s != local.Drawn || err != nil {
		t.Errorf("state %v, error %v", s, err)
	}
	h.Pass(0)
	hold(t, c)
	c.Pass(0)
	if l.Keys() != 0 {
		t.Error("a line is left behind")
	}
}

func BenchmarkAlone(b *testing.B) {
	var l lines
	b.ReportAllocs()
	for b.Loop() {
		p := l.Join("key", "")
		_, _ = p.Wait(b.Context(), forever)
		p.Pass(0)
	}
}

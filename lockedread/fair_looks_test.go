package lockedread_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
)

// Waiters with several looks at the item under way, in virtual time.

// watched is the network of a process, which counts its looks.
type watched struct {
	rig.Mortal
	// slow, if set, is how much longer the answer to the nth look takes.
	slow func(n int) time.Duration
	// at, if set, is told how many looks are under way when one is sent.
	at func(underWay int)

	mu                   sync.Mutex
	sent, underWay, most int // guarded by mu
}

func (w *watched) Do(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.Header.Get("X-Amz-Target"), ".GetItem") {
		return w.Mortal.Do(req)
	}
	w.mu.Lock()
	w.sent++
	w.underWay++
	w.most = max(w.most, w.underWay)
	n, underWay := w.sent, w.underWay
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		w.underWay--
		w.mu.Unlock()
	}()
	if w.at != nil {
		w.at(underWay)
	}
	resp, err := w.Mortal.Do(req)
	if w.slow != nil {
		select {
		case <-time.After(w.slow(n)):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	return resp, err
}

// looks are how many were sent, how many are under way, and how many were at most.
func (w *watched) looks() (sent, underWay, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent, w.underWay, w.most
}

// inTurns lets processes change the item again and again, side by side, and returns
// how long a change took on average.
func (b bench) inTurns(t *testing.T, processes []*watched, times int) time.Duration {
	t.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for _, w := range processes {
		l := b.over(t, w, lockedread.Config{Fair: true})
		all.Go(func() {
			for range times {
				_, err := l.Update(t.Context(), key, addOne)
				rig.Is(t, err)
				if _, underWay, _ := w.looks(); underWay > 0 {
					t.Errorf("%d looks go on after their call has returned", underWay)
				}
			}
		})
	}
	all.Wait()
	return time.Since(began) / time.Duration(times*len(processes))
}

// Those who are next have several looks under way, and hear of their turn sooner than by one
// look after another, which takes half a trip more in every turn. There are never
// more of them than a partition bears.
func TestFairLooksOverlap(t *testing.T) {
	t.Parallel()
	const trip, processes, times = 4 * time.Millisecond, 6, 20
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		var all []*watched
		for range processes {
			all = append(all, &watched{Mortal: rig.Mortal{Next: network, Latency: trip / 2}})
		}
		turn := b.inTurns(t, all, times)
		sum := 0
		for _, w := range all {
			sent, _, most := w.looks()
			if sum += sent; most < 3 || most > 6 {
				t.Errorf("%d looks of one waiter at once", most)
			}
		}
		perChange, rate := float64(sum)/processes/times, float64(sum)/turn.Seconds()/processes/times
		t.Logf("a change takes %v, %.1f looks, %.0f a second", turn, perChange, rate)
		if turn > trip*13/10 {
			t.Errorf("a change takes %v, and a trip %v", turn, trip)
		}
		if rate > 3000 {
			t.Errorf("%.0f looks a second: a partition gives 3,000", rate)
		}
	})
	wantCount(t, b, 10+processes*times)
	wantClean(t, b)
}

// Answers that come late, and after newer ones, mislead nobody.
func TestFairLooksAnsweredOutOfOrder(t *testing.T) {
	const processes, times = 5, 10
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		var all []*watched
		for i := range processes {
			all = append(all, &watched{
				Mortal: rig.Mortal{Next: network, Latency: 2 * time.Millisecond},
				slow:   func(n int) time.Duration { return time.Duration((n*7+i)%4) * 9 * time.Millisecond },
			})
		}
		t.Logf("a change takes %v", b.inTurns(t, all, times))
	})
	wantCount(t, b, 10+processes*times)
	wantClean(t, b)
}

// A waiter is killed, and another goes away, with several looks under way: those behind
// are served, and nothing goes on behind who went away.
func TestFairEndsWithLooksUnderWay(t *testing.T) {
	const several = 3
	cfg := lockedread.Config{Fair: true} // a second of grace
	for name, killed := range map[string]bool{"killed": true, "gone away": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				held := acquire(t, b.over(t, network, cfg))
				ctx, leave := context.WithCancel(t.Context())
				first := &watched{Mortal: rig.Mortal{Next: network, Latency: 2 * time.Millisecond}}
				ended := make(chan struct{})
				var once sync.Once
				first.at = func(underWay int) {
					if underWay < several {
						return
					}
					once.Do(func() {
						first.Dead.Store(killed)
						leave()
						close(ended)
					})
				}
				gone, served := make(chan error), make(chan error)
				go func() {
					_, err := b.over(t, first, cfg).Update(ctx, key, addOne)
					if _, underWay, _ := first.looks(); underWay > 0 {
						t.Errorf("%d looks go on after their call has returned", underWay)
					}
					gone <- err
				}()
				time.Sleep(5 * time.Millisecond) // in virtual time: it stands in the queue
				go func() {
					_, err := b.over(t, &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}, cfg).Update(t.Context(), key, addOne)
					served <- err
				}()
				<-ended
				rig.Is(t, <-gone, context.Canceled)
				began := time.Now()
				rig.Is(t, held.Release(t.Context()))
				rig.Is(t, <-served)
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("the next one was served after %v", took)
				}
			})
			wantCount(t, b, 11)
			wantClean(t, b)
		})
	}
}

// A partition that refuses looks gets fewer of them the longer it does, and who is refused
// for a moment hears of its turn a moment later.
func TestFairLooksThrottled(t *testing.T) {
	for _, c := range []struct {
		busy, late time.Duration
		most       int // looks that are refused
	}{
		{20 * time.Millisecond, 40 * time.Millisecond, 6},
		{time.Second, time.Second / 2, 15},
	} {
		b := newBench(t)
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			held := acquire(t, b.over(t, network, lockedread.Config{Fair: true}))
			until := time.Now().Add(c.busy)
			refusing := fault.New(network, fault.Config{Script: func(op string, _ int, _ []byte) fault.Kind {
				if op == "GetItem" && time.Now().Before(until) {
					return fault.Throttle
				}
				return fault.None
			}})
			w := &watched{Mortal: rig.Mortal{Next: refusing, Latency: 2 * time.Millisecond}}
			served := make(chan error)
			go func() {
				_, err := b.over(t, w, lockedread.Config{Fair: true}).Update(t.Context(), key, addOne)
				served <- err
			}()
			time.Sleep(c.busy)
			if sent, _, _ := w.looks(); sent < 3 || sent > c.most {
				t.Errorf("%d looks in %v, of which none was answered", sent, c.busy)
			}
			rig.Is(t, held.Release(t.Context()))
			rig.Is(t, <-served)
			if late := time.Since(until); late > c.late {
				t.Errorf("after %v it was served %v late", c.busy, late)
			}
		})
		wantCount(t, b, 11)
		wantClean(t, b)
	}
}

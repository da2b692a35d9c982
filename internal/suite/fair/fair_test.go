package fair_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

// run is a test of one face.
type run struct {
	*testing.T
	f *fixture.Fixture
	c face

	all   sync.WaitGroup
	mu    sync.Mutex
	order []int     // guarded by mu: who was served
	token []int64   // guarded by mu: under which token
	last  time.Time // guarded by mu: when
	freed time.Time // guarded by mu: when the holder's call ended
}

// hold lets the first program hold; release ends that, and freed tells since when.
func (r *run) hold(ctx context.Context, client *dynamodb.Client) (release func()) {
	holds, open := make(chan struct{}), make(chan struct{})
	p := r.c.program(r.T, r.f, client, 0)
	r.all.Go(func() {
		rig.Is(r, p(ctx, func(token int64) {
			r.mu.Lock()
			r.token = append(r.token, token)
			r.mu.Unlock()
			close(holds)
			<-open
		}))
		r.mu.Lock()
		defer r.mu.Unlock()
		r.freed = time.Now()
	})
	<-holds
	return func() { close(open) }
}

// wait starts the nth waiter, whose error is for ended.
func (r *run) wait(ctx context.Context, client *dynamodb.Client, nth int, ended func(error)) {
	p := r.c.program(r.T, r.f, client, nth)
	r.all.Go(func() {
		ended(p(ctx, func(token int64) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.order, r.token, r.last = append(r.order, nth), append(r.token, token), time.Now()
		}))
	})
}

func (r *run) served(err error) { rig.Is(r, err) }

// clean demands that nobody holds or waits.
func (r *run) clean() {
	r.Helper()
	row := r.c.row(r.T, r.f)
	if row["lockedBy"] != nil || row["lockTime"] != nil || standing(row) != 0 || r.c.endless && row != nil {
		r.Errorf("left on the row: %v", row)
	}
}

func eachRun(t *testing.T, test func(r *run)) {
	each(t, func(t *testing.T, f *fixture.Fixture, c face) { test(&run{T: t, f: f, c: c}) })
}

// soon bounds what must not take long, generously: a machine may be starved.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// Programs are served in the order in which they came, each under a greater token, and
// hardly a write is wasted.
func TestServiceInTheOrderOfArrival(t *testing.T) {
	eachRun(t, func(r *run) {
		const waiters = 6
		ctx := soon(r)
		release := r.hold(ctx, r.f.Client)
		alone := standing(r.c.row(r.T, r.f))
		for i := 1; i <= waiters; i++ {
			r.wait(ctx, r.f.Client, i, r.served)
			rig.Await(r, fmt.Sprintf("%d stand in the queue", i), func() bool { return standing(r.c.row(r.T, r.f)) >= alone+i })
		}
		r.f.Count.Reset()
		release()
		r.all.Wait()
		if !slices.Equal(r.order, []int{1, 2, 3, 4, 5, 6}) {
			r.Errorf("served %v", r.order)
		}
		tokens := slices.DeleteFunc(slices.Clone(r.token), func(n int64) bool { return n == 0 })
		if !slices.IsSorted(tokens) || len(slices.Compact(tokens)) != len(tokens) {
			r.Errorf("tokens %v", r.token)
		}
		writes := r.f.Count.Count("UpdateItem") + r.f.Count.Count("DeleteItem") + r.f.Count.Count("TransactWriteItems")
		if most := 2 + r.c.writes*waiters; writes > most { // the holder's may meet one who has come since its last look
			r.Errorf("%d writes, want at most %d", writes, most)
		}
		r.clean()
	})
}

// Whoever leaves takes its entry along, and says for whom it waited.
func TestLeaving(t *testing.T) {
	eachRun(t, func(r *run) {
		ctx := soon(r)
		release := r.hold(ctx, r.f.Client)
		alone := standing(r.c.row(r.T, r.f))
		stand := func(n int) {
			rig.Await(r, fmt.Sprintf("%d stand in the queue", n), func() bool { return standing(r.c.row(r.T, r.f)) >= alone+n })
		}
		r.wait(ctx, r.f.Client, 1, r.served)
		stand(1)
		leaving, leave := context.WithCancel(ctx)
		gone := make(chan error, 1)
		r.wait(leaving, r.f.Client, 2, func(err error) { gone <- err })
		stand(2)
		r.wait(ctx, r.f.Client, 3, r.served)
		stand(3)
		leave()
		rig.Is(r, <-gone, repo.ErrLocked, context.Canceled)
		if n := standing(r.c.row(r.T, r.f)); n != alone+2 {
			r.Errorf("%d entries, want %d", n, alone+2)
		}
		release()
		r.all.Wait()
		if !slices.Equal(r.order, []int{1, 3}) {
			r.Errorf("served %v", r.order)
		}
		r.clean()
	})
}

// One that has died costs the others a while, and they keep their order.
func TestTheDeadArePassedOver(t *testing.T) {
	eachRun(t, func(r *run) {
		r.inVirtualTime(func(network fault.Doer) {
			release := r.hold(r.Context(), over(network))
			dying, die := context.WithCancel(r.Context())
			var dead *rig.Mortal
			for i := 1; i <= 4; i++ {
				net := &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}
				if i == 2 {
					dead = net
					r.wait(dying, over(net), i, func(error) {})
				} else {
					r.wait(r.Context(), over(net), i, r.served)
				}
				time.Sleep(20 * time.Millisecond) // in virtual time: it stands in the queue
			}
			dead.Dead.Store(true)
			die()
			from := time.Now()
			release()
			r.all.Wait()
			if took := time.Since(from); took > r.c.dead {
				r.Errorf("served after %v", took)
			}
			if !slices.Equal(r.order, []int{1, 3, 4}) {
				r.Errorf("served %v", r.order)
			}
		})
		r.clean()
	})
}

// Whichever one of its messages is lost, or the answer to it, a waiter is served, and soon:
// only what it sends before it stands in a queue may take the whole time-out of a request.
func TestOneLostMessage(t *testing.T) {
	eachMessage(t, func(r *run, nth int, arrives bool) (lost bool) {
		r.inVirtualTime(func(network fault.Doer) {
			release := r.hold(r.Context(), over(network))
			first := 1
			if r.c.joins { // somebody whose messages arrive begins the queue
				r.wait(r.Context(), over(network), 1, r.served)
				time.Sleep(5 * time.Millisecond)
				first = 2
			}
			loses := lossy(network, nth, arrives, &lost)
			r.wait(r.Context(), over(loses), first, r.served)
			time.Sleep(5 * time.Millisecond) // in virtual time: it stands in the queue, or has lost its request
			from := time.Now()
			release()
			r.all.Wait()
			most := r.c.lost
			if nth == 1 && r.c.enters {
				most += timeout
			}
			if took := r.last.Sub(from); took > most {
				r.Errorf("served after %v", took)
			}
		})
		return lost
	})
}

// Whichever message of a holder's end is lost, or the answer to it, the next one is served
// when the call ends at the latest.
func TestOneLostMessageOfTheHolder(t *testing.T) {
	eachMessage(t, func(r *run, nth int, arrives bool) (lost bool) {
		r.inVirtualTime(func(network fault.Doer) {
			var armed atomic.Bool
			loses := lossy(network, nth, arrives, &lost)
			all := loses.Lost
			loses.Lost = func(op, body string) (before, after bool) {
				if !armed.Load() {
					return false, false
				}
				return all(op, body)
			}
			release := r.hold(r.Context(), over(loses))
			r.wait(r.Context(), over(network), 1, r.served)
			time.Sleep(100 * time.Millisecond) // in virtual time: it stands in the queue
			armed.Store(true)
			release()
			r.all.Wait()
			if late := r.last.Sub(r.freed); late > grace {
				r.Errorf("served %v after the end of the call", late)
			}
			if tokens := r.token; tokens[0] >= tokens[1] && tokens[1] > 0 && !r.c.endless {
				r.Errorf("tokens %v", tokens)
			}
		})
		return lost
	})
}

// eachMessage runs a test of every face for its nth message, until it had none.
func eachMessage(t *testing.T, test func(r *run, nth int, arrives bool) (lost bool)) {
	for _, c := range faces() {
		for _, arrives := range []bool{false, true} {
			for nth, more := 1, true; more && nth <= 20; nth++ {
				t.Run(fmt.Sprintf("%s/%d, arrives %v", c.name, nth, arrives), func(t *testing.T) {
					r := &run{T: t, f: c.make(t), c: c}
					more = test(r, nth, arrives)
					r.clean()
				})
			}
		}
	}
}

// lossy is a network that loses the nth message, or the answer to it, and tells.
func lossy(network fault.Doer, nth int, arrives bool, lost *bool) *rig.Mortal {
	var mu sync.Mutex
	sent := 0
	return &rig.Mortal{Next: network, Latency: time.Millisecond, Lost: func(string, string) (before, after bool) {
		mu.Lock()
		defer mu.Unlock()
		sent++
		*lost = *lost || sent == nth
		return sent == nth && !arrives, sent == nth && arrives
	}}
}

// inVirtualTime runs a part of the test in it.
func (r *run) inVirtualTime(part func(network fault.Doer)) {
	outer := r.T
	rig.InVirtualTime(outer, 16, func(t *testing.T, network fault.Doer) {
		r.T = t
		part(network)
	})
	r.T = outer
}

func over(network fault.Doer) *dynamodb.Client { return rig.Client(rig.Over(network)) }

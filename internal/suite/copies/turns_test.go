package copies_test

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// turnLease bounds what a writer without the lock may cost others that dies in its turn:
// the lease of a turn, the allowance for clocks, and a look.
const turnLease = 8 * time.Second

// turning is a change without the lock, that takes its turn in a queue. during runs in its
// closure.
type turning struct {
	suffix string // of its table
	change func(ctx context.Context, s *shop, id string, during func()) error
	make   txnOp
}

func turnings() map[string]turning {
	by := txnOps()
	inTx := func(do func(ctx context.Context, s *shop, tx *txn.Tx, id string, during func()) error) func(context.Context, *shop, string, func()) error {
		return func(ctx context.Context, s *shop, id string, during func()) error {
			return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error { return do(ctx, s, tx, id, during) })
		}
	}
	return map[string]turning{
		"optimistic": {"-o", func(ctx context.Context, s *shop, id string, during func()) error {
			_, err := s.o.Update(ctx, thingKey(id), func(_ context.Context, v *thing) error { during(); v.N++; return nil })
			return err
		}, by["Update"]},
		"nolock": {"-n", func(ctx context.Context, s *shop, id string, during func()) error {
			_, err := s.n.Update(ctx, thingKey(id), func(_ context.Context, v *happening) error { during(); v.N++; return nil })
			return err
		}, by["nolock Update"]},
		"transaction, optimistic": {"-o", inTx(func(ctx context.Context, s *shop, tx *txn.Tx, id string, during func()) error {
			_, err := s.o.In(tx).Update(ctx, thingKey(id), func(_ context.Context, v *thing) error { during(); v.N++; return nil })
			return err
		}), by["Update"]},
		"transaction, nolock": {"-n", inTx(func(ctx context.Context, s *shop, tx *txn.Tx, id string, during func()) error {
			_, err := s.n.In(tx).Update(ctx, thingKey(id), func(_ context.Context, v *happening) error { during(); v.N++; return nil })
			return err
		}), by["nolock Update"]},
	}
}

// taker takes the item's lock as somebody else.
func (c turning) taker(t *testing.T, network fault.Doer, id string) func(context.Context) (release func(context.Context) error, err error) {
	if c.suffix == "-n" {
		return takerOf[happening](t, network, c.suffix, id)
	}
	return takerOf[thing](t, network, c.suffix, id)
}

func takerOf[T any](t *testing.T, network fault.Doer, suffix, id string) func(context.Context) (func(context.Context) error, error) {
	table := rig.Must(repo.NewTable[T](rig.Client(rig.Over(network)), shopTables.Table+suffix, repo.TableConfig{}))(t)
	l := rig.Must(lockedread.New(table, lockedread.Config{Renew: true}))(t)
	return func(ctx context.Context) (func(context.Context) error, error) {
		h, err := l.Acquire(ctx, thingKey(id))
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}
}

// queueing is a change that takes its place in a queue of others, in virtual time.
type queueing struct {
	*testing.T
	net   *rig.Mortal                                                 // of the change
	taken *fault.Copier                                               // in front of it
	wait  func() time.Duration                                        // takes the lock once more, and tells for how long it waited
	begin func(ctx context.Context, during func()) (ended chan error) // during runs in its turn
}

// inQueue runs a test of the change, and returns how often it was applied.
func (c turning) inQueue(t *testing.T, run func(q queueing)) (done int) {
	_, _, peer := openShop(t)
	id := rand.Text()
	rig.Is(t, c.make.make(t.Context(), peer, id))
	rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) {
		q := queueing{T: t, net: &rig.Mortal{Next: network, Latency: 2 * time.Millisecond}}
		q.taken = fault.NewCopier(q.net)
		mine := shopIn(t, rig.Client(rig.Over(q.taken)))
		take := func() func(context.Context) error { return rig.Must(c.taker(t, network, id)(t.Context()))(t) }
		q.wait = func() time.Duration {
			began := time.Now()
			release := take()
			took := time.Since(began)
			rig.Is(t, release(t.Context()))
			return took
		}
		q.begin = func(ctx context.Context, during func()) chan error {
			release := take()
			go q.wait() // so that there is a queue
			time.Sleep(50 * time.Millisecond)
			ended := make(chan error, 1)
			go func() { ended <- c.change(ctx, mine, id, during) }()
			time.Sleep(50 * time.Millisecond)
			rig.Is(t, release(t.Context()))
			return ended
		}
		run(q)
		synctest.Wait()
	})
	return c.make.done(t.Context(), peer, id)
}

// Who dies in its turn keeps the others out for the lease of a turn, which is short.
func TestADeadWriterHoldsTheQueueForTheLeaseOfATurn(t *testing.T) {
	for name, c := range turnings() {
		t.Run(name, func(t *testing.T) {
			n := c.inQueue(t, func(q queueing) {
				ctx, die := context.WithCancel(q.Context())
				dead := make(chan struct{})
				ended := q.begin(ctx, func() {
					time.Sleep(3 * time.Second) // until it has shown that it lives
					q.net.Dead.Store(true)
					die()
					close(dead)
				})
				<-dead
				if took := q.wait(); took > turnLease {
					q.Errorf("others waited for %v", took)
				}
				if err := <-ended; err == nil {
					q.Error("a dead writer was told that it has written")
				}
			})
			rig.Equal(t, n, 0, "applied times")
		})
	}
}

// A copy of the request for a place takes the lock, which nobody holds then, for no longer.
func TestACopyOfAPlaceHoldsTheQueueForTheLeaseOfATurn(t *testing.T) {
	for name, c := range turnings() {
		t.Run(name, func(t *testing.T) {
			n := c.inQueue(t, func(q queueing) {
				places := q.taken.Keep(func(one *fault.Copy) bool { return one.Op == "UpdateItem" })
				rig.Is(q, <-q.begin(q.Context(), func() {}))
				resp, err := places()[0].Deliver()
				if err != nil {
					q.Fatal(err)
				}
				rig.Is(q, resp.Body.Close())
				rig.Equal(q, resp.StatusCode, 200, "the answer to the copy")
				if took := q.wait(); took > turnLease {
					q.Errorf("others waited for %v", took)
				}
			})
			rig.Equal(t, n, 1, "applied times")
		})
	}
}

// A change that does not return loses its turn, in the end.
func TestAChangeThatHangsLosesItsTurn(t *testing.T) {
	for name, c := range turnings() {
		t.Run(name, func(t *testing.T) {
			n := c.inQueue(t, func(q queueing) {
				inTurn, hangs := make(chan struct{}, 100), make(chan struct{})
				ended := q.begin(q.Context(), func() {
					inTurn <- struct{}{}
					<-hangs
				})
				<-inTurn
				if took := q.wait(); took > 6*time.Minute {
					q.Errorf("others had the item after %v", took)
				}
				close(hangs)
				rig.Is(q, <-ended)
			})
			rig.Equal(t, n, 1, "applied times")
		})
	}
}

// Who works for long in its turn keeps it: others wait behind, and the change runs once.
func TestALongChangeKeepsItsTurn(t *testing.T) {
	for name, c := range turnings() {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int64
			n := c.inQueue(t, func(q queueing) {
				inTurn := make(chan struct{}, 100)
				ended := q.begin(q.Context(), func() {
					runs.Add(1)
					inTurn <- struct{}{}
					time.Sleep(time.Minute)
				})
				<-inTurn
				if took := q.wait(); took < 50*time.Second {
					q.Errorf("others had the item after %v", took)
				}
				rig.Is(q, <-ended)
			})
			rig.Equal(t, n, 1, "applied times")
			rig.Equal(t, runs.Load(), int64(1), "runs")
		})
	}
}

package txn_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// everything is a transaction that changes an item, requires a lock, a turn and a
// permit, ends a job and queues two.
type everything struct {
	*world
	holds
	t     *testing.T
	held  []txn.Held
	job   *jobs.Job[int]
	store store
}

func newEverything(t *testing.T, kind string) *everything {
	t.Helper()
	w := newWorld(t)
	e := &everything{world: w, holds: w.holds(t, nil), t: t, store: w.stores[kind]}
	rig.Is(t, e.store.create(t.Context(), w.id("x"), 10))
	e.held = []txn.Held{
		rig.Must(e.closed.Lock(t.Context(), w.id("lock")))(t), rig.Must(e.open.Lock(t.Context(), w.id("open")))(t),
		rig.Must(e.queue.Lock(t.Context(), w.id("queue")))(t), rig.Must(e.permits.Acquire(t.Context(), w.id("permit")))(t),
	}
	rig.Must(e.work.Enqueue(t.Context(), w.id("first"), 1, jobs.WithID("first")))(t)
	e.job = rig.Must(e.work.Next(t.Context(), w.id("first")))(t)
	return e
}

func (e *everything) run(ctx context.Context) error {
	return txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		if err := e.store.in(tx).add(ctx, e.id("x"), 1); err != nil {
			return err
		}
		if err := tx.Require(e.held...); err != nil {
			return err
		}
		if _, err := e.work.In(tx).Enqueue(ctx, e.id("second"), 1); err != nil {
			return err
		}
		if _, err := e.work.In(tx).Enqueue(ctx, e.id("second"), 2, jobs.WithID("second")); err != nil {
			return err
		}
		return e.job.DoneIn(tx)
	})
}

// verdict fails the test unless what the transaction said is true of everything.
func (e *everything) verdict(what any, err error) {
	e.t.Helper()
	n, wrong := e.store.get(e.t.Context(), e.id("x"))
	rig.Is(e.t, wrong)
	first, second := rig.Must(e.work.Resource(e.t.Context(), e.id("first")))(e.t), rig.Must(e.work.Resource(e.t.Context(), e.id("second")))(e.t)
	applied := n == 11
	jobs := first.Queued + first.Running
	ended := context.Cause(e.job.Context())
	switch {
	case applied && (jobs != 0 || second.Queued != 2), !applied && (n != 10 || jobs != 1 || second.Queued != 0):
		e.t.Errorf("%v: the item has %d, %d jobs are there and %d are new", what, n, jobs, second.Queued)
	case err == nil && !applied:
		e.t.Errorf("%v: not applied, without an error", what)
	case err == nil && !errors.Is(ended, repo.ErrReleased):
		e.t.Errorf("%v: the job has ended with %v", what, ended)
	case err != nil && !errors.Is(err, repo.ErrOutcomeUnknown) && applied:
		e.t.Errorf("%v: applied, with %v", what, err)
	case errors.Is(err, repo.ErrOutcomeUnknown) && !errors.Is(e.job.Done(e.t.Context()), repo.ErrOutcomeUnknown):
		e.t.Errorf("%v: the job says something else than %v", what, err)
	}
	e.line(e.t, e.id("first"), first.Queued, first.Running)
	e.line(e.t, e.id("second"), second.Queued, 0)
}

// Every fault on every request of a transaction with rows of all kinds, once.
func TestOneFaultOnRows(t *testing.T) {
	t.Parallel()
	for _, kind := range rig.Share([]string{"optimistic"}, kinds) {
		for nth := range 2 {
			t.Run(fmt.Sprintf("%s, request %d", kind, nth), func(t *testing.T) {
				t.Parallel()
				for _, fault := range fault.AllKinds() {
					e := newEverything(t, kind)
					var n atomic.Int64
					e.Faults(script(&n, func(m int64) bool { return m == int64(nth) }, fault))
					err := e.run(t.Context())
					e.Faults(nil)
					e.Net.Wait()
					if err != nil {
						t.Errorf("%v: %v", fault, err)
					}
					e.verdict(fault, err)
				}
			})
		}
	}
}

func script(n *atomic.Int64, hit func(n int64) bool, kind fault.Kind) rig.Script {
	return func(string, int, []byte) fault.Kind {
		if hit(n.Add(1) - 1) {
			return kind
		}
		return fault.None
	}
}

// The same fault on everything from one request on.
func TestFaultsWithoutEndOnRows(t *testing.T) {
	t.Parallel()
	for nth := range 2 {
		for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.Error500After, fault.Throttle, fault.TransactionConflict, fault.Refuse} {
			t.Run(fmt.Sprintf("from request %d, %v", nth, kind), func(t *testing.T) {
				t.Parallel()
				e := newEverything(t, "optimistic")
				var n atomic.Int64
				e.Faults(script(&n, func(m int64) bool { return m >= int64(nth) }, kind))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := e.run(ctx)
				e.Faults(nil)
				e.Net.Wait()
				if err == nil {
					t.Error("no error")
				}
				e.verdict(kind, err)
			})
		}
	}
}

// A commit that never gets an answer is decided by the job that it would have ended:
// it is given back, or gone.
func TestReturnTells(t *testing.T) {
	for kind, applied := range map[fault.Kind]bool{fault.LoseResponse: true, fault.DropRequest: false} {
		e := newEverything(t, "optimistic")
		e.Faults(func(op string, _ int, body []byte) fault.Kind {
			if op == "TransactWriteItems" && strings.Contains(string(body), "ConditionCheck\"") {
				return kind
			}
			return fault.None
		})
		err := e.run(t.Context())
		e.Faults(nil)
		if (err == nil) != applied || errors.Is(err, repo.ErrOutcomeUnknown) {
			t.Errorf("%v: error %v", kind, err)
		}
		e.verdict(kind, err)
		rig.Is(t, e.job.Done(t.Context()), repo.ErrReleased)
	}
}

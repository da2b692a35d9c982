package txn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// settled fails the test unless the counters of the queue are those of its rows, and so
// many jobs of a resource wait, some of them for their time.
func (h holds) settled(t *testing.T, resource string, queued, later int) {
	t.Helper()
	r := rig.Must(h.work.Resource(t.Context(), resource))(t)
	if r.Queued != queued || r.Later != later {
		t.Errorf("%d queued, %d of them later; want %d and %d", r.Queued, r.Later, queued, later)
	}
	for tally, err := range h.work.Audit(t.Context()) {
		if rig.Is(t, err); !tally.OK() {
			t.Errorf("%v", tally)
		}
	}
}

// A job with a time comes, gets another time and goes with the changes of transactions, or
// not at all.
func TestLaterJobsInTransactions(t *testing.T) {
	for _, own := range []bool{false, true} {
		w := newWorld(t)
		h := w.holds(t, nil)
		s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
		rig.Is(t, s.create(t.Context(), x, 0))
		options := []jobs.Option{jobs.After(time.Hour)}
		if own {
			options = append(options, jobs.WithID("hold-17"))
		}
		var id string
		with := func(end error, do func(ctx context.Context, v *jobs.View[int]) error) error {
			return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				return errors.Join(do(ctx, h.work.In(tx)), s.in(tx).add(ctx, x, 1), end)
			})
		}
		enqueue := func(ctx context.Context, v *jobs.View[int]) (err error) {
			id, err = v.Enqueue(ctx, line, 1, options...)
			return err
		}
		cancel := func(ctx context.Context, v *jobs.View[int]) error { return v.Cancel(ctx, line, id) }
		put := func(to time.Duration) func(context.Context, *jobs.View[int]) error {
			return func(ctx context.Context, v *jobs.View[int]) error {
				return v.Reschedule(ctx, line, id, time.Now().Add(to))
			}
		}
		rig.Is(t, with(errStop, enqueue), errStop)
		h.settled(t, line, 0, 0)
		rig.Is(t, with(nil, enqueue))
		h.settled(t, line, 1, 1)
		rig.Is(t, with(errStop, cancel), errStop)
		rig.Is(t, with(errStop, put(0)), errStop)
		h.settled(t, line, 1, 1)
		rig.Is(t, with(nil, put(2*time.Hour)))
		h.settled(t, line, 1, 1)
		rig.Is(t, with(nil, put(0)))
		h.settled(t, line, 1, 0)
		rig.Is(t, with(nil, put(time.Hour)))
		h.settled(t, line, 1, 1)
		rig.Is(t, with(nil, cancel))
		h.settled(t, line, 0, 0)
		rig.Is(t, with(nil, cancel), repo.ErrNotFound)
		has(t, s, x, 5)
	}
}

// Where a job is started, or put into its line, between the closure and the commit, the
// closure runs again, and is told what it is now.
func TestCancelOfAJobThatIsStarted(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Is(t, s.create(t.Context(), x, 0))
	for _, moves := range []bool{true, false} {
		id := rig.Must(h.work.Enqueue(t.Context(), line, 1, jobs.After(30*time.Millisecond)))(t)
		runs := 0
		var started *jobs.Job[int]
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			runs++
			if err := h.work.In(tx).Cancel(ctx, line, id); err != nil {
				return err
			}
			if runs == 1 {
				rig.Await(t, "it is started", func() (got bool) {
					var err error
					started, err = h.work.Next(t.Context(), line)
					return err == nil
				})
				if moves {
					rig.Is(t, started.Return(t.Context()))
				}
			}
			return s.in(tx).add(ctx, x, 1)
		})
		rig.Equal(t, runs, 2, "runs")
		if moves {
			rig.Is(t, err)
			h.settled(t, line, 0, 0)
			has(t, s, x, 1)
			continue
		}
		rig.Is(t, err, repo.ErrLocked)
		has(t, s, x, 1)
		rig.Is(t, started.Done(t.Context()))
	}
}

// Over a network that loses answers each change comes with its jobs, once.
func TestLaterJobsOverABadNetwork(t *testing.T) {
	w := newWorld(t)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Is(t, s.create(t.Context(), x, 0))
	p := w.process(t, 11, 0.1)
	h, mine := p.holds(t, nil), openPeer(t, w).holds(t, nil)
	for range rig.Share(20, 200) {
		var id string
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) (err error) {
			if id, err = h.work.In(tx).Enqueue(ctx, line, 1, jobs.After(time.Hour)); err != nil {
				return err
			}
			return p.stores["optimistic"].in(tx).add(ctx, x, 1)
		})
		if rig.Is(t, err); err != nil {
			return
		}
		err = txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if err := h.work.In(tx).Cancel(ctx, line, id); err != nil {
				return err
			}
			return p.stores["optimistic"].in(tx).add(ctx, x, -1)
		})
		if rig.Is(t, err); err != nil {
			return
		}
	}
	has(t, s, x, 0)
	mine.settled(t, line, 0, 0)
}

// A transaction that enqueues a job again under its id, and gives it another time, leaves
// the one job.
func TestAJobThatIsEnqueuedAgainAndMoved(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	line := w.id("line")
	rig.Must(h.work.Enqueue(t.Context(), line, 1, jobs.WithID("message"), jobs.After(time.Hour)))(t)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		v := h.work.In(tx)
		if _, err := v.Enqueue(ctx, line, 1, jobs.WithID("message"), jobs.After(time.Hour)); err != nil {
			return err
		}
		return v.Reschedule(ctx, line, "message", time.Now().Add(2*time.Hour))
	}))
	h.settled(t, line, 1, 1)
}

// What becomes of a job in a transaction is said once: a later call that says otherwise is
// refused, and not left out.
func TestAJobIsMovedOrCancelledOnce(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	line := w.id("line")
	id := rig.Must(h.work.Enqueue(t.Context(), line, 1, jobs.After(time.Hour)))(t)
	cancel := func(ctx context.Context, v *jobs.View[int]) error { return v.Cancel(ctx, line, id) }
	put := func(ctx context.Context, v *jobs.View[int]) error {
		return v.Reschedule(ctx, line, id, time.Now().Add(2*time.Hour))
	}
	for name, both := range map[string][2]func(context.Context, *jobs.View[int]) error{
		"moved and cancelled": {put, cancel}, "cancelled and moved": {cancel, put}, "moved twice": {put, put}} {
		t.Run(name, func(t *testing.T) {
			rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
				rig.Is(t, both[0](ctx, h.work.In(tx)))
				return both[1](ctx, h.work.In(tx))
			}), repo.ErrConfig)
			h.settled(t, line, 1, 1)
		})
	}
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		return errors.Join(cancel(ctx, h.work.In(tx)), cancel(ctx, h.work.In(tx)))
	}))
	h.settled(t, line, 0, 0)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		own, err := h.work.In(tx).Enqueue(ctx, line, 1)
		rig.Is(t, err)
		rig.Is(t, h.work.In(tx).Cancel(ctx, line, own), repo.ErrNotFound) // it is not there before the commit
		return nil
	}))
	h.settled(t, line, 1, 0)
}

// A key is free when its job ends, also where the transaction that ends it enqueues the job
// again under its id.
func TestAKeyOfAJobThatIsEnqueuedAgainAndEnds(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	line := w.id("line")
	message := []jobs.Option{jobs.WithID("message"), jobs.Unique("key")}
	rig.Must(h.work.Enqueue(t.Context(), line, 1, message...))(t)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		_, err := h.work.In(tx).Enqueue(ctx, line, 1, message...)
		return errors.Join(err, job.DoneIn(tx))
	}))
	h.settled(t, line, 0, 0)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		_, err := h.work.In(tx).Enqueue(ctx, line, 2, jobs.Unique("key"))
		return err
	}))
	h.settled(t, line, 1, 0)
}

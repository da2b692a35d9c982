package nested_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// contexts are that of a closure and others that are derived from it.
func contexts(ctx context.Context, t *testing.T) map[string]context.Context {
	type mine struct{}
	later, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	return map[string]context.Context{
		"": ctx, ", with a value": context.WithValue(ctx, mine{}, 1), ", with a deadline": later, ", without its end": context.WithoutCancel(ctx),
	}
}

// A repository that is used inside a closure without In(tx) would write at each run, and
// also if the transaction fails: it is refused before anything is sent.
func TestARepositoryInsideAClosure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, y := w.make(t, "x"), w.make(t, "y")
	held := rig.Must(w.locking.Acquire(t.Context(), key(w.make(t, "z"))))(t)
	calls := all(w.writes(), w.transactions(), map[string]call{
		"optimistic.Get": func(ctx context.Context, id string) error { _, err := w.optimistic.Get(ctx, key(id)); return err },
		"optimistic.Once.Get": func(ctx context.Context, id string) error {
			_, err := w.optimistic.Once("x").Get(ctx, key(id))
			return err
		},
		"pessimistic.Get":   func(ctx context.Context, id string) error { _, err := w.locking.Get(ctx, key(id)); return err },
		"nolock.Get":        func(ctx context.Context, id string) error { _, err := w.events.Get(ctx, key(id)); return err },
		"lockedread.Commit": func(ctx context.Context, _ string) error { _, err := held.Commit(ctx, held.Item()); return err },
		"lockedread.Delete": func(ctx context.Context, _ string) error { return held.Delete(ctx) },
	})
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if _, err := w.optimistic.In(tx).Update(ctx, key(x), more); err != nil {
			return err
		}
		before := w.Count.Total()
		check := func(where string, ctx context.Context) {
			for name, call := range calls {
				for _, id := range []string{x, y, "new"} {
					refused(t, name+" of "+id+where, call(ctx, id), "txn.Outside(ctx)")
				}
			}
		}
		for where, ctx := range contexts(ctx, t) {
			check(where, ctx)
		}
		_, err := w.optimistic.In(tx).Update(ctx, key(x), func(ctx context.Context, _ *thing) error {
			for name, call := range calls {
				refused(t, name+" inside a change", call(ctx, y), "txn.Outside(ctx)")
			}
			return nil
		})
		rig.Equal(t, w.Count.Total()-before, 0, "requests")
		return err
	}))
	rig.Is(t, held.Release(t.Context()))
	w.has(t, x, 11)
	w.has(t, y, 10)
	w.has(t, "z", 10)
}

// A loop around a forgotten In(tx) ends, and the transaction with it.
func TestAForgottenCallEndsTheTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x, runs := w.make(t, "x"), 0
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if _, err := w.optimistic.In(tx).Get(ctx, key(x)); err != nil {
			return err
		}
		for {
			_, err := w.optimistic.Update(ctx, key(x), more)
			if !repo.Retryable(err) {
				return err
			}
		}
	})
	refused(t, "Update", err, "In(tx)")
	rig.Equal(t, runs, 1, "runs")
	w.has(t, x, 10)
}

// Who means it says so.
func TestOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, call := range w.writes() {
		x, y := w.make(t, "x "+name), w.make(t, "y "+name)
		mine := errors.New("mine")
		err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			if _, err := w.locking.In(tx).Update(ctx, key(x), more); err != nil {
				return err
			}
			if err := call(txn.Outside(ctx), y); err != nil && !errors.Is(err, repo.ErrExists) {
				return err
			}
			// Its lock is held: that would wait for the transaction.
			refused(t, name, call(txn.Outside(ctx), x), "In(tx)")
			refused(t, name+", a transaction", txn.Run(txn.Outside(ctx), func(ctx context.Context, tx *txn.Tx) error {
				_, err := w.optimistic.In(tx).Get(ctx, key(x))
				return err
			}), "lock")
			return mine
		})
		rig.Is(t, err, mine)
		w.has(t, x, 10)
	}
	// It ends as the closure's context does.
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, _ *txn.Tx) error {
		ctx, cancel := context.WithCancelCause(ctx)
		outside := txn.Outside(ctx)
		cancel(errors.New("the cause"))
		if outside.Err() == nil || fmt.Sprint(context.Cause(outside)) != "the cause" {
			t.Error("it does not end")
		}
		return nil
	}))
}

// What reads for no strategy is allowed, and so is everything when the closure has ended.
func TestWhatAClosureMayDoOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := w.make(t, "x")
	var kept context.Context
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, _ *txn.Tx) error {
		kept = context.WithoutCancel(ctx)
		if _, err := w.optimistic.Table().Get(ctx, key(x)); err != nil {
			return err
		}
		for _, err := range w.optimistic.Table().Scan(ctx) {
			if err != nil {
				return err
			}
		}
		return nil
	}))
	for name, call := range w.writes() {
		id := w.make(t, "x "+name)
		if err := call(kept, id); err != nil && !errors.Is(err, repo.ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Jobs are queued, and end, with the transaction.
func TestJobsInsideAClosure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	jobs := rig.Must(jobs.New[int](w.Client, w.Table+"-s", jobs.Config{}))(t)
	rig.Is(t, jobs.EnsureTable(t.Context()))
	rig.Must(jobs.Enqueue(t.Context(), "line", 1))(t)
	job := rig.Must(jobs.Next(t.Context(), "line"))(t)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, _ *txn.Tx) error {
		_, err := jobs.Enqueue(ctx, "line", 2)
		refused(t, "Enqueue", err, "In(tx)")
		refused(t, "Done", job.Done(ctx), "DoneIn(tx)")
		refused(t, "Cancel", jobs.Cancel(ctx, "line", "1"), "In(tx).Cancel")
		refused(t, "Reschedule", jobs.Reschedule(ctx, "line", "1", time.Now()), "In(tx).Reschedule")
		_, err = jobs.EnqueueMany(ctx, "line", []int{2})
		refused(t, "EnqueueMany", err, "In(tx).Enqueue")
		for name, call := range map[string]func() error{
			"Fail":     func() error { return job.Fail(ctx, errors.New("no")) },
			"Return":   func() error { return job.Return(ctx) },
			"Snooze":   func() error { return job.Snooze(ctx, time.Second) },
			"Next":     func() error { _, err := jobs.Next(ctx, "line"); return err },
			"BreakJob": func() error { return jobs.BreakJob(ctx, "line", job.ID(), job.Token()) },
			"Requeue":  func() error { return jobs.Requeue(ctx, "line", "1") },
			"Discard":  func() error { return jobs.Discard(ctx, "line", "1") },
		} {
			refused(t, name, call(), "after the transaction")
		}
		_, err = jobs.Enqueue(txn.Outside(ctx), "line", 2)
		return err
	}))
	rig.Is(t, job.Done(t.Context()))
	rig.Equal(t, rig.Must(jobs.Resource(t.Context(), "line"))(t).Queued, 1, "jobs")
}

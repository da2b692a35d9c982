package txn_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// line fails the test unless so many jobs of a resource wait and run, and the counters
// say so.
func (h holds) line(t *testing.T, resource string, queued, running int) {
	t.Helper()
	r := rig.Must(h.work.Resource(t.Context(), resource))(t)
	jobs := map[bool]int{}
	for job, err := range h.work.Jobs(t.Context(), resource) {
		rig.Is(t, err)
		jobs[job.Running]++
	}
	if r.Queued != queued || r.Running != running || jobs[false] != queued || jobs[true] != running {
		t.Errorf("counted %d queued and %d running, rows %v, want %d and %d", r.Queued, r.Running, jobs, queued, running)
	}
}

// Jobs are queued if the transaction is applied, and only then; those of one resource
// share its row.
func TestEnqueue(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	w.Count.Reset()
	var ids []string
	run := func(end error) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			ids = nil
			for n := range 3 {
				ids = append(ids, rig.Must(h.work.In(tx).Enqueue(ctx, line, n))(t))
			}
			return errors.Join(s.in(tx).create(ctx, x, 1), end)
		})
	}
	rig.Is(t, run(errStop), errStop)
	if n := w.Count.Total(); n != 1 { // that the item is not there was only assumed
		t.Errorf("%v", w.Count.Counts())
	}
	w.Count.Reset()
	rig.Is(t, run(nil))
	if n := w.Count.Total(); n != 2 { // the second rings for dispatchers
		t.Errorf("%v", w.Count.Counts())
	}
	h.line(t, line, 3, 0)
	var found []string
	for job, err := range h.work.Jobs(t.Context(), line) {
		rig.Is(t, err)
		found = append(found, job.ID)
	}
	if !slices.Equal(found, ids) {
		t.Errorf("jobs %q, want %q", found, ids)
	}
	rig.Is(t, run(nil), repo.ErrExists)
	h.line(t, line, 3, 0)
}

// An id of the caller's own makes one job, in however many transactions: the others
// are applied without it.
func TestEnqueueTwice(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Is(t, s.create(t.Context(), x, 0))
	run := func(more bool) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for range 2 {
				if id, err := h.work.In(tx).Enqueue(ctx, line, 1, jobs.WithID("message")); err != nil || id != "message" {
					return fmt.Errorf("id %q: %w", id, err)
				}
			}
			if more {
				rig.Must(h.work.In(tx).Enqueue(ctx, line, 2))(t)
				return s.in(tx).add(ctx, x, 1)
			}
			return nil
		})
	}
	rig.Is(t, run(true))
	h.line(t, line, 1+1, 0)
	rig.Is(t, run(true))
	h.line(t, line, 1+2, 0)
	w.Count.Reset()
	rig.Is(t, run(false))
	rig.Equal(t, w.Count.Total(), 1, "%v", w.Count.Counts())
	h.line(t, line, 1+2, 0)
	has(t, s, x, 2)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		if _, err := h.work.In(tx).Enqueue(ctx, line, 1, jobs.WithID("message")); err != nil {
			return err
		}
		return job.DoneIn(tx)
	}))
	rig.Is(t, run(false)) // it was done lately
	h.line(t, line, 2, 0)
}

// Where others write first, the jobs of the run that is applied are queued, once.
func TestEnqueueAndRunAgain(t *testing.T) {
	w := newWorld(t)
	h, peer := w.holds(t, nil), openPeer(t, w)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Is(t, s.create(t.Context(), x, 10))
	runs := 0
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		runs++
		if err := s.in(tx).add(ctx, x, 1); err != nil {
			return err
		}
		if runs == 1 {
			rig.Is(t, peer.of(w, s).add(t.Context(), x, 1))
		}
		_, err := h.work.In(tx).Enqueue(ctx, line, runs)
		return err
	}))
	h.line(t, line, 1, 0)
	if job := rig.Must(h.work.Next(t.Context(), line))(t); runs != 2 || job.Value() != 2 {
		t.Errorf("%d runs, job of run %d", runs, job.Value())
	}
}

// A job ends with the change that it makes, or goes on without it.
func TestDoneIn(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Is(t, s.create(t.Context(), x, 0))
	rig.Must(h.work.Enqueue(t.Context(), line, 1, jobs.WithID("message")))(t)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	run := func(end error) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			return errors.Join(tx.Require(job), job.DoneIn(tx), job.DoneIn(tx), s.in(tx).add(ctx, x, 1), end)
		})
	}
	rig.Is(t, run(errStop), errStop)
	h.line(t, line, 0, 1)
	rig.Is(t, context.Cause(job.Context()))
	w.Count.Reset()
	rig.Is(t, run(nil))
	rig.Equal(t, w.Count.Total(), 2, "%v", w.Count.Counts())
	h.line(t, line, 0, 0)
	has(t, s, x, 1)
	rig.Is(t, context.Cause(job.Context()), repo.ErrReleased)
	rig.Is(t, job.Done(t.Context()), repo.ErrReleased)
	rig.Is(t, run(nil), repo.ErrReleased)
	has(t, s, x, 1)
}

// A job that another works on meanwhile is not ended, and nothing is written.
func TestDoneInOfAJobThatIsLost(t *testing.T) {
	w := newWorld(t)
	h, others := w.holds(t, nil), openPeer(t, w).holds(t, ahead)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Must(h.work.Enqueue(t.Context(), line, 1))(t)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		rig.Is(t, job.DoneIn(tx))
		rig.Await(t, "it is taken over", func() bool { _, err := others.work.Next(t.Context(), line); return err == nil })
		return s.in(tx).create(ctx, x, 1)
	})
	rig.Is(t, err, repo.ErrLockLost)
	var failed *txn.Error
	if !errors.As(err, &failed) || len(failed.Failed) != 1 || failed.Failed[0].Key != (repo.Key{Partition: "JOBS#" + line, Sort: job.ID()}) {
		t.Errorf("failed: %+v", failed)
	}
	has(t, s, x, -1)
	h.line(t, line, 0, 1)
	rig.Is(t, job.Done(t.Context()), repo.ErrLockLost)
}

// A dispatcher whose handlers end their jobs with their changes, and queue the next
// ones, makes each change once, over a bad network.
func TestDispatcherWithTransactions(t *testing.T) {
	all := rig.Share(5, 50)
	w := newWorld(t)
	p := w.process(t, 7, 0.05)
	open := func(w *world) *jobs.Queue[int] {
		return rig.Must(jobs.New[int](w.Client, w.Table+"-d", jobs.Config{Lease: shortLease, ClockSkew: -1, Retry: jobs.Retry{Attempts: 1000, Min: time.Millisecond, Max: time.Millisecond}}))(t)
	}
	s, mine, clean, sem := w.stores["optimistic"], p.stores["optimistic"], open(w), open(p)
	rig.Is(t, clean.EnsureTable(t.Context()))
	x := w.id("x")
	rig.Is(t, s.create(t.Context(), x, 0))
	for n := range all {
		rig.Must(clean.Enqueue(t.Context(), "first", n))(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	rig.Is(t, sem.Run(ctx, func(ctx context.Context, job *jobs.Job[int]) error {
		err := txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
			if job.Resource() == "first" {
				if _, err := sem.In(tx).Enqueue(ctx, "second", job.Value()); err != nil {
					return err
				}
			}
			if err := mine.in(tx).add(ctx, x, 1); err != nil {
				return err
			}
			return job.DoneIn(tx)
		})
		if n, _ := s.get(t.Context(), x); n == 2*all {
			cancel()
		}
		return err
	}))
	p.Faults(nil)
	p.Net.Wait()
	has(t, s, x, 2*all)
	for tally, err := range clean.Audit(t.Context()) {
		rig.Is(t, err)
		if !tally.OK() || tally.Queued+tally.Running+tally.Dead != 0 {
			t.Errorf("counters: %v", tally)
		}
	}
}

// Where the service does not know the token any more, a new job's row tells that the
// transaction was applied, and so does the row of a job that is gone.
func TestEvidenceInTheRows(t *testing.T) {
	w := newWorld(t)
	h, line := w.holds(t, nil), w.id("line")
	sem := rig.Must(jobs.New[int](forgetful{w.Client}, w.Table+"-s", jobs.Config{}))(t)
	rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { _, err := sem.In(tx).Enqueue(ctx, line, 1); return err }))
	h.line(t, line, 1, 0)
	job := rig.Must(sem.Next(t.Context(), line))(t)
	rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error { return job.DoneIn(tx) }))
	h.line(t, line, 0, 0)
	rig.Is(t, job.Done(t.Context()), repo.ErrReleased)
}

// What gives a job back, to find out whether a transaction without an answer was applied, goes
// on where the table throttles it for longer than the client's policy bears.
func TestAThrottledReturnTellsOfATransaction(t *testing.T) {
	w := newWorld(t)
	h := w.holds(t, nil)
	s, x, line := w.stores["optimistic"], w.id("x"), w.id("line")
	rig.Must(h.work.Enqueue(t.Context(), line, 1))(t)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	returns := 0
	w.Faults(func(op string, _ int, body []byte) fault.Kind {
		switch isReturn := strings.Contains(string(body), `"queued"`); {
		case op != "TransactWriteItems":
			return fault.None
		case !isReturn:
			return fault.DropRequest
		default:
			if returns++; returns <= 30 {
				return fault.Throttle
			}
		}
		return fault.None
	})
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
		return errors.Join(job.DoneIn(tx), s.in(tx).create(ctx, x, 1))
	})
	w.Faults(nil)
	if err == nil || errors.Is(err, repo.ErrOutcomeUnknown) || returns <= 30 {
		t.Errorf("error %v after %d requests for the return", err, returns)
	}
	has(t, s, x, -1)
	h.line(t, line, 1, 0)
}

// Transactions and single calls on one resource: each job is queued, and each done,
// once.
func TestJobsBesideTransactions(t *testing.T) {
	rounds := rig.Share(4, 30)
	w := newWorld(t)
	line := w.id("line")
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			h := openPeer(t, w).holds(t, nil)
			rig.Is(t, h.work.SetLimit(t.Context(), line, 4))
			for range rounds {
				if n%2 == 0 {
					rig.Must(h.work.Enqueue(t.Context(), line, 1))(t)
				} else {
					rig.Is(t, txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { _, err := h.work.In(tx).Enqueue(ctx, line, 1); return err }))
				}
				var job *jobs.Job[int]
				rig.Await(t, "others leave a job", func() bool { job, _ = h.work.Next(t.Context(), line); return job != nil })
				if n%2 == 0 {
					rig.Is(t, job.Done(t.Context()))
				} else {
					rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error { return job.DoneIn(tx) }))
				}
			}
		})
	}
	all.Wait()
	w.holds(t, nil).line(t, line, 0, 0)
}

// Misuse has a word of what is wrong.
func TestJobsBadInput(t *testing.T) {
	w := newWorld(t)
	h, line := w.holds(t, nil), w.id("line")
	made := rig.Must(h.work.Enqueue(t.Context(), line, 1))(t)
	job := rig.Must(h.work.Next(t.Context(), line))(t)
	var kept *txn.Tx
	rig.Is(t, txn.Run(t.Context(), func(_ context.Context, tx *txn.Tx) error { kept = tx; return nil }))
	enqueue := func(ctx context.Context, tx *txn.Tx, resource string, options ...jobs.Option) error {
		_, err := h.work.In(tx).Enqueue(ctx, resource, 1, options...)
		return err
	}
	for name, c := range map[string]struct {
		run  func(ctx context.Context, tx *txn.Tx) error
		want error
		text string
	}{
		"no resource":            {func(ctx context.Context, tx *txn.Tx) error { return enqueue(ctx, tx, "") }, repo.ErrKey, "no name"},
		"an id that was made":    {func(ctx context.Context, tx *txn.Tx) error { return enqueue(ctx, tx, line, jobs.WithID(made)) }, repo.ErrConfig, "id of your own"},
		"no transaction":         {func(ctx context.Context, _ *txn.Tx) error { return enqueue(ctx, nil, line) }, repo.ErrConfig, "nil"},
		"the transaction before": {func(ctx context.Context, _ *txn.Tx) error { return enqueue(ctx, kept, line) }, repo.ErrConfig, "over"},
		"its end":                {func(context.Context, *txn.Tx) error { return job.DoneIn(kept) }, repo.ErrConfig, "over"},
		"too many": {func(ctx context.Context, tx *txn.Tx) error {
			for range 100 {
				rig.Is(t, enqueue(ctx, tx, line))
			}
			return nil
		}, txn.ErrTooLarge, "100 items"},
		"a row that is a repository's": {func(ctx context.Context, tx *txn.Tx) error {
			type lock struct {
				Name string `dynamodbav:"name" repo:"pk"`
				V    int64  `dynamodbav:"v" repo:"version"`
			}
			rows := rig.Must(optimistic.New(rig.Must(repo.NewTable[lock](w.Client, w.Table+"-m", repo.TableConfig{}))(t), optimistic.Config{}))(t)
			held := rig.Must(h.closed.Lock(ctx, w.id("l")))(t)
			if _, err := rows.In(tx).Create(ctx, lock{Name: w.id("l")}); err != nil {
				return err
			}
			return tx.Require(held)
		}, repo.ErrConfig, "by a repository too"},
	} {
		t.Run(name, func(t *testing.T) {
			err := txn.Run(t.Context(), c.run)
			rig.Is(t, err, c.want)
			if !strings.Contains(fmt.Sprint(err), c.text) {
				t.Errorf("error %v does not say %q", err, c.text)
			}
			h.line(t, line, 0, 1)
		})
	}
	global := rig.Must(jobs.New[int](rig.Strong{Client: w.Client}, w.Table+"-s", jobs.Config{}))(t)
	err := txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error { _, err := global.In(tx).Enqueue(ctx, line, 1); return err })
	rig.Is(t, err, repo.ErrSchema)
	if !strings.Contains(fmt.Sprint(err), "global table with strong consistency") {
		t.Errorf("error %v", err)
	}
}

package repotest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
)

// A dead holder of an item's lock is overtaken as soon as the clock says so, by each
// kind of writer, and finds out.
func TestALockEndsByTheClock(t *testing.T) {
	t.Parallel()
	for name, writer := range map[string]func(*repo.Table[account]) (repo.Repository[account], error){
		"pessimistic": func(table *repo.Table[account]) (repo.Repository[account], error) {
			return pessimistic.New(table, pessimistic.Config{Lease: lease})
		},
		"pessimistic, fair": func(table *repo.Table[account]) (repo.Repository[account], error) {
			return pessimistic.New(table, pessimistic.Config{Lease: lease, Fair: true})
		},
		"optimistic": func(table *repo.Table[account]) (repo.Repository[account], error) {
			return optimistic.New(table, optimistic.Config{})
		},
		"nolock": func(table *repo.Table[account]) (repo.Repository[account], error) {
			return nolock.New(table, nolock.Config{})
		},
	} {
		for _, waits := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				var clock repotest.Clock
				table := open(t, &clock)
				dead := rig.Must(rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Fair: name == "pessimistic, fair"}))(t).Acquire(t.Context(), key))(t)
				if waits { // its first request has found the lock in place
					faults := repotest.NewFaults(t, rig.Client())
					table = rig.Must(repo.NewTable[account](faults.Client(), table.Name(), repo.TableConfig{Clock: clock.Now}))(t)
					first := "GetItem"
					if strings.HasPrefix(name, "pessimistic") {
						first = "UpdateItem"
					}
					faults.After(first, 1, func() { time.AfterFunc(10*time.Millisecond, func() { clock.Advance(2 * lease) }) })
				} else {
					clock.Advance(2 * lease)
				}
				b := rig.Must(writer(table))(t)
				if got := rig.Must(b.Update(soon(t), key, addOne))(t); got.Balance != 1 {
					t.Errorf("%+v", got)
				}
				rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
				item := dead.Item()
				item.Balance = 100
				_, err := dead.Commit(t.Context(), item)
				rig.Is(t, err, repo.ErrLockLost)
				if got := rig.Must(table.Get(t.Context(), key))(t); got.Balance != 1 {
					t.Errorf("the dead holder's change is there: %+v", got)
				}
			})
		}
	}
}

// Of a holder that is alive the lease is renewed by the clock.
func TestALiveHolderRenewsByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	table := open(t, &clock)
	held := rig.Must(rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Renew: true}))(t).Acquire(t.Context(), key))(t)
	for range 5 {
		until := held.Until()
		if left := until.Sub(clock.Now()); left > lease || left < lease/2 {
			t.Fatalf("%v left", left)
		}
		clock.Advance(lease / 2)
		rig.Await(t, "the lease is renewed", func() bool { return held.Until().After(until) })
	}
	if _, err := rig.Must(pessimistic.New(table, pessimistic.Config{}))(t).TryAcquire(t.Context(), key); !errors.Is(err, repo.ErrLocked) {
		t.Errorf("error %v", err)
	}
	rig.Is(t, held.Release(t.Context()))
}

// A commit behind the lease, which nobody has taken over, is late by the clock.
func TestACommitIsLateByTheClock(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{false, true} {
		var clock repotest.Clock
		table := open(t, &clock)
		held := rig.Must(rig.Must(lockedread.New(table, lockedread.Config{Lease: lease, LateCommit: late}))(t).Acquire(t.Context(), key))(t)
		clock.Advance(lease)
		item := held.Item()
		item.Balance = 9
		_, err := held.Commit(t.Context(), item)
		if late {
			rig.Is(t, err)
		} else {
			rig.Is(t, err, repo.ErrLockExpired)
		}
	}
}

func TestAMutexEndsByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	r := rig.New(t)
	cfg := mutex.Config{Mode: mutex.FailOpen, Lease: lease, Table: repo.TableConfig{Clock: clock.Now}}
	locks := rig.Must(mutex.New(r.Client, r.Table, cfg))(t)
	rig.Is(t, locks.EnsureTable(t.Context()))
	dead := rig.Must(locks.Lock(t.Context(), "report"))(t)
	if info := rig.Must(locks.Inspect(t.Context(), "report"))(t); !info.Until.Equal(clock.Now().Add(lease)) {
		t.Errorf("%+v at %v", info, clock.Now())
	}
	clock.Advance(2 * lease)
	next := rig.Must(locks.Lock(soon(t), "report"))(t)
	if next.Token() <= dead.Token() {
		t.Errorf("token %d after %d", next.Token(), dead.Token())
	}
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	rig.Is(t, dead.Extend(t.Context()), repo.ErrLockExpired)
	rig.Is(t, next.Unlock(t.Context()))
}

// Tickets whose owner has died are passed over by one who is alive, and has waited long.
func TestATicketEndsByTheClock(t *testing.T) {
	t.Parallel()
	var clock, ofDead repotest.Clock
	ofDead.Set(clock.Now())
	r := rig.New(t)
	queues := func(clock *repotest.Clock) *ticket.Queue {
		return rig.Must(ticket.New(r.Client, r.Table, ticket.Config{Lease: lease, Table: repo.TableConfig{Clock: clock.Now}}))(t)
	}
	dead, queue := queues(&ofDead), queues(&clock)
	rig.Is(t, queue.EnsureTable(t.Context()))
	served := rig.Must(dead.Lock(t.Context(), "printer"))(t)
	rig.Must(dead.Join(t.Context(), "printer"))(t)
	ofDead.Advance(2 * lease) // from now on it renews nothing
	rig.Is(t, rig.Ended(served.Context(), t), repo.ErrLockExpired)

	mine := rig.Must(queue.Join(t.Context(), "printer"))(t)
	turn := make(chan error)
	go func() {
		got, err := mine.Wait(soon(t))
		if err == nil {
			err = got.Done(t.Context())
		}
		turn <- err
	}()
	// So small a step that the ticket does not end where its owner has yet to learn of the
	// renewal that the queue shows.
	const step = lease * 2 / 5
	for range 3 {
		clock.Advance(step)
		rig.Await(t, "the ticket is renewed, or done", func() bool {
			all := rig.Must(queue.List(t.Context(), "printer"))(t)
			return len(all) == 0 || all[len(all)-1].Until.After(clock.Now().Add(lease-step))
		})
	}
	rig.Is(t, <-turn)
}

func TestPermitsAndJobsEndByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	r := rig.New(t)
	table := repo.TableConfig{Clock: clock.Now}
	deploys := rig.Must(jobs.New[string](r.Client, r.Table, jobs.Config{Lease: lease, Retry: jobs.Retry{Min: time.Hour, Max: time.Hour}, Table: table}))(t)
	permits := rig.Must(semaphore.New(r.Client, r.Table, semaphore.Config{Lease: lease, Table: table}))(t)
	rig.Is(t, deploys.EnsureTable(t.Context()))

	dead := rig.Must(permits.Acquire(t.Context(), "staging"))(t)
	clock.Advance(2 * lease)
	next := rig.Must(permits.Acquire(soon(t), "staging"))(t)
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	rig.Is(t, next.Release(t.Context()))

	rig.Must(deploys.Enqueue(t.Context(), "production", "v7"))(t)
	lost := rig.Must(deploys.Next(t.Context(), "production"))(t)
	running, done := make(chan int), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- deploys.Run(ctx, func(_ context.Context, job *jobs.Job[string]) error {
			running <- job.Attempt()
			if job.Attempt() < 3 {
				return errors.New("not yet")
			}
			return nil
		})
	}()
	clock.Advance(2 * lease)
	for want := 2; want <= 3; want++ {
		select {
		case attempt := <-running:
			rig.Equal(t, attempt, want, "attempt")
		case <-time.After(rig.Patience):
			t.Fatalf("attempt %d is not made", want)
		}
		if want == 2 {
			rig.Is(t, rig.Ended(lost.Context(), t), repo.ErrLockExpired)
			rig.Is(t, lost.Done(t.Context()), repo.ErrLockLost)
			rig.Await(t, "the job waits for its next attempt", func() bool {
				return rig.Must(deploys.Resource(t.Context(), "production"))(t).Queued == 1
			})
			clock.Advance(time.Hour) // the pause before the next attempt
		}
	}
	rig.Await(t, "the job is done", func() bool { return rig.Must(deploys.Resource(t.Context(), "production"))(t).Running == 0 })
	cancel()
	rig.Is(t, <-done)
}

// A run of once.Do whose process died is made again, and a result is forgotten, by the
// clock.
func TestOnceByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	r := rig.New(t)
	store := rig.Must(once.New(r.Client, r.Table, once.Config{Lease: lease, Table: repo.TableConfig{Clock: clock.Now, Remember: time.Hour}}))(t)
	rig.Is(t, store.EnsureTable(t.Context()))
	runs := 0
	charge := func(context.Context, once.Run) (int, error) { runs++; return runs, nil }

	began, end := make(chan struct{}), make(chan struct{})
	first := make(chan error, 1)
	go func() {
		_, err := once.Do(t.Context(), store, "m1", func(ctx context.Context, _ once.Run) (int, error) {
			close(began)
			<-end
			return -1, context.Cause(ctx)
		})
		first <- err
	}()
	<-began
	_, err := once.Try(t.Context(), store, "m1", charge)
	rig.Is(t, err, repo.ErrLocked)
	clock.Advance(2 * lease)
	rig.Equal(t, rig.Must(once.Try(soon(t), store, "m1", charge))(t), 1, "result")
	close(end)
	if err := <-first; err == nil {
		t.Error("the run that lost its lease was completed")
	}
	for want, by := range map[int]time.Duration{1: 30 * time.Minute} {
		clock.Advance(by)
		rig.Equal(t, rig.Must(once.Do(soon(t), store, "m1", charge))(t), want, "result")
	}
	clock.Advance(2 * time.Hour)
	rig.Equal(t, rig.Must(once.Do(soon(t), store, "m1", charge))(t), 2, "result of an operation that was forgotten")
}

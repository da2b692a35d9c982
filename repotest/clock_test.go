package repotest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
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

type account struct {
	ID      string    `dynamodbav:"id" repo:"pk"`
	Balance int       `dynamodbav:"balance"`
	At      int64     `dynamodbav:"at" repo:"eventtime"`
	Version int64     `dynamodbav:"version" repo:"version"`
	Created time.Time `dynamodbav:"created" repo:"created"`
	Updated time.Time `dynamodbav:"updated" repo:"updated"`
	Expires int64     `dynamodbav:"expiresAt,omitempty"`
}

var key = repo.Key{Partition: "a1"}

func addOne(_ context.Context, a *account) error { a.Balance++; a.At++; return nil }

// soon bounds what must not wait for a lease: each is an hour, and no test waits for one.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	t.Cleanup(cancel)
	return ctx
}

const lease = time.Hour

// open is a table with an account, by a clock.
func open(t *testing.T, clock *repotest.Clock) *repo.Table[account] {
	t.Helper()
	r := rig.New(t)
	table := rig.Must(repo.NewTable[account](r.Client, r.Table, repo.TableConfig{Clock: clock.Now}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), account{ID: "a1", At: 1}))(t)
	return table
}

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
	for range 2 {
		clock.Advance(lease * 2 / 3)
		rig.Await(t, "the ticket is renewed, or done", func() bool {
			all := rig.Must(queue.List(t.Context(), "printer"))(t)
			return len(all) == 0 || all[len(all)-1].Until.After(clock.Now().Add(lease*2/3))
		})
	}
	rig.Is(t, <-turn)
}

func TestPermitsAndJobsEndByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	r := rig.New(t)
	cfg := semaphore.Config{Lease: lease, Retry: semaphore.Retry{Min: time.Hour, Max: time.Hour}, Table: repo.TableConfig{Clock: clock.Now}}
	deploys := rig.Must(semaphore.New[string](r.Client, r.Table, cfg))(t)
	rig.Is(t, deploys.EnsureTable(t.Context()))

	dead := rig.Must(deploys.Acquire(t.Context(), "staging"))(t)
	clock.Advance(2 * lease)
	next := rig.Must(deploys.Acquire(soon(t), "staging"))(t)
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	rig.Is(t, next.Release(t.Context()))

	rig.Must(deploys.Enqueue(t.Context(), "production", "v7"))(t)
	lost := rig.Must(deploys.Next(t.Context(), "production"))(t)
	running, done := make(chan int), make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		done <- deploys.Run(ctx, func(_ context.Context, job *semaphore.Job[string]) error {
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
			if attempt != want {
				t.Errorf("attempt %d", attempt)
			}
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
	clock.Advance(2 * lease)
	if got := rig.Must(once.Do(soon(t), store, "m1", charge))(t); got != 1 {
		t.Errorf("result %d", got)
	}
	close(end)
	if err := <-first; err == nil {
		t.Error("the run that lost its lease was completed")
	}
	for want, by := range map[int]time.Duration{1: 30 * time.Minute} {
		clock.Advance(by)
		if got := rig.Must(once.Do(soon(t), store, "m1", charge))(t); got != want {
			t.Errorf("result %d, want %d", got, want)
		}
	}
	clock.Advance(2 * time.Hour)
	if got := rig.Must(once.Do(soon(t), store, "m1", charge))(t); got != 2 {
		t.Errorf("result %d of an operation that was forgotten", got)
	}
}

// Ids of changes are forgotten by the clock, and items stamped by it.
func TestItemsByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	table := open(t, &clock)
	accounts := rig.Must(optimistic.New(table, optimistic.Config{}))(t)
	made := clock.Now()
	for i, want := range []int{1, 1, 4} {
		for other := range i {
			// Ids that come later end the time of those before them, which are remembered for
			// as long again.
			if i == 2 {
				clock.Advance(3 * time.Hour)
				rig.Must(accounts.Once(fmt.Sprint("other ", other)).Update(t.Context(), key, addOne))(t)
			}
		}
		if got := rig.Must(accounts.Once("m1").Update(t.Context(), key, addOne))(t); got.Balance != want {
			t.Errorf("balance %d, want %d", got.Balance, want)
		}
	}
	got := rig.Must(table.Get(t.Context(), key))(t)
	if !got.Created.Equal(made) || !got.Updated.Equal(clock.Now()) {
		t.Errorf("created %v, updated %v, by the clock %v and %v", got.Created, got.Updated, made, clock.Now())
	}

	rig.Must(accounts.Update(t.Context(), key, func(_ context.Context, a *account) error {
		a.Expires = clock.Now().Add(time.Hour).Unix()
		return nil
	}))(t)
	for _, want := range []int{1, 0} {
		n := 0
		for _, err := range table.Query(t.Context(), "a1", repo.Unexpired()) {
			rig.Is(t, err)
			n++
		}
		if n != want {
			t.Errorf("%d items that have not expired, want %d", n, want)
		}
		clock.Advance(2 * time.Hour)
	}
}

// An event of a day ahead is refused, until the clock is there.
func TestEventsByTheClock(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	table := open(t, &clock)
	events := rig.Must(nolock.New(table, nolock.Config{Unit: time.Second, MaxSkew: time.Hour}))(t)
	tomorrow := account{ID: "a1", At: clock.Now().Add(24 * time.Hour).Unix()}
	if err := events.Put(t.Context(), tomorrow); err == nil {
		t.Error("an event of tomorrow was taken")
	}
	clock.Advance(24 * time.Hour)
	rig.Is(t, events.Put(t.Context(), tomorrow))
	rig.Is(t, events.Put(t.Context(), account{ID: "a1", At: tomorrow.At - 1}), repo.ErrStale)
}

// Clockless locks are judged by watching: no clock makes anybody take one.
func TestNoClockMovesAClocklessTakeover(t *testing.T) {
	t.Parallel()
	var clock repotest.Clock
	table := open(t, &clock)
	rig.Must(rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease}))(t).Acquire(t.Context(), key))(t)
	watcher := rig.Must(pessimistic.New(table, pessimistic.Config{Lease: lease, Clockless: true, Wait: repo.Wait{Attempts: 5}}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var moved sync.WaitGroup
	moved.Go(func() {
		for ctx.Err() == nil {
			clock.Advance(lease)
			runtime.Gosched()
		}
	})
	_, err := watcher.Update(soon(t), key, addOne)
	cancel()
	moved.Wait()
	rig.Is(t, err, repo.ErrLocked)
}

// Clocks that jump at random, each process its own, cost exclusion, and no update.
func TestClocksThatJumpMakeNoVerdictWrong(t *testing.T) {
	t.Parallel()
	var first repotest.Clock
	table := open(t, &first)
	var applied, unknown sync.Map
	var all sync.WaitGroup
	for worker := range 6 {
		clock := &repotest.Clock{}
		r := rig.Client()
		mine := rig.Must(repo.NewTable[account](r, table.Name(), repo.TableConfig{Clock: clock.Now}))(t)
		cfg := pessimistic.Config{Lease: time.Second, Renew: worker%2 == 0, Fair: worker%3 == 0, ClockSkew: -1}
		accounts := rig.Must(pessimistic.New(mine, cfg))(t)
		all.Go(func() {
			for i := range 15 {
				_, err := accounts.Update(soon(t), key, func(_ context.Context, a *account) error {
					clock.Advance(time.Duration(i%5-1) * time.Second)
					return addOne(t.Context(), a)
				})
				switch repo.VerdictOf(err) {
				case repo.Written:
					applied.Store([2]int{worker, i}, true)
				case repo.Unknown:
					unknown.Store([2]int{worker, i}, true)
				}
			}
		})
	}
	all.Wait()
	sure, perhaps := count(&applied), count(&unknown)
	got := rig.Must(table.Get(t.Context(), key))(t)
	if got.Balance < sure || got.Balance > sure+perhaps || sure == 0 {
		t.Errorf("balance %d, %d changes were applied, of %d it is not known", got.Balance, sure, perhaps)
	}
}

func count(m *sync.Map) (n int) {
	m.Range(func(any, any) bool { n++; return true })
	return n
}

func TestClock(t *testing.T) {
	var c repotest.Clock
	before := time.Now().Add(-time.Second)
	at := c.Now()
	if at.Before(before) || at.After(time.Now()) || c.Now() != at {
		t.Errorf("it shows %v, then %v", at, c.Now())
	}
	if got := c.Advance(time.Hour); got != at.Add(time.Hour) || c.Now() != got {
		t.Errorf("an hour after %v it shows %v", at, c.Now())
	}
	to := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	c.Set(to)
	if c.Advance(-time.Second); c.Now() != to.Add(-time.Second) {
		t.Errorf("it shows %v", c.Now())
	}
}

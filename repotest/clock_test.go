package repotest_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
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
		rig.Equal(t, n, want, "items that have not expired")
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
	if c.Set(time.Time{}); !c.Now().IsZero() || c.Advance(time.Hour) != (time.Time{}).Add(time.Hour) {
		t.Errorf("set to the zero time it shows %v", c.Now())
	}
}

package adoption

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// shown

// underBoth runs work under the old lock and the new one, in this order in all programs.
func underBoth(ctx context.Context, old *dynamolock, locks *mutex.Locker, name string, work func(context.Context, *mutex.Lock) error) error {
	theirs, err := old.AcquireLock(ctx, name)
	if err != nil {
		return err
	}
	defer old.ReleaseLock(context.WithoutCancel(ctx), theirs) //nolint:errcheck // it ends with its lease
	return locks.Do(ctx, name, work)
}

// end of what is shown

var onTheirKey = repo.KeySchema{Partition: repo.KeyAttribute{Name: "key"}}

// During the two deployments: whoever has both locks keeps out both the programs before and those after.
func TestARollingChangeOfTheLock(t *testing.T) {
	eachClient(t, func(t *testing.T, table string, open func(string) *dynamolock) {
		locks := must(mutex.New(client, table+"-new", mutex.Config{Mode: mutex.FailOpen}))(t)
		check(t, locks.EnsureTable(t.Context()))
		before, middle := open("before"), open("middle")
		err := underBoth(t.Context(), middle, locks, "report", func(ctx context.Context, _ *mutex.Lock) error {
			if _, err := before.AcquireLock(ctx, "report"); !errors.Is(err, errNotGranted) {
				t.Errorf("a program from before is let in: %v", err)
			}
			if _, err := locks.TryLock(ctx, "report"); !errors.Is(err, repo.ErrLocked) {
				t.Errorf("a program of the second deployment is let in: %v", err)
			}
			return nil
		})
		check(t, err)
		theirs := must(before.AcquireLock(t.Context(), "report"))(t)
		unreached := func(context.Context, *mutex.Lock) error { t.Error("it ran beside a program from before"); return nil }
		if err := underBoth(t.Context(), middle, locks, "report", unreached); !errors.Is(err, errNotGranted) {
			t.Error(err)
		}
		// Why there are two deployments: those before and those after do not see each other.
		lock := must(locks.TryLock(t.Context(), "report"))(t)
		check(t, lock.Unlock(t.Context()))
		must(before.ReleaseLock(t.Context(), theirs))(t)
	})
}

// Why the new table: on one table neither keeps the other out, in either order.
func TestOnOneTableNeitherKeepsTheOtherOut(t *testing.T) {
	eachClient(t, func(t *testing.T, table string, open func(string) *dynamolock) {
		locks := must(mutex.New(client, table, mutex.Config{Mode: mutex.FailOpen, Key: onTheirKey}))(t)
		check(t, locks.EnsureTable(t.Context())) // it fits, for its keys do
		theirs := must(open("a").AcquireLock(t.Context(), "report"))(t)
		lock := must(locks.TryLock(t.Context(), "report"))(t)
		check(t, lock.Unlock(t.Context()))
		must(open("a").ReleaseLock(t.Context(), theirs))(t)
		lock = must(locks.TryLock(t.Context(), "report"))(t) // over a released row of theirs
		must(open("a").AcquireLock(t.Context(), "report"))(t)
		left := raw(t, table, "key", "report")["lockedBy"] != nil
		if keeps := open("a").keeps; left != keeps {
			t.Errorf("our lock is in their row: %v; their client keeps what it does not know: %v", left, keeps)
		}
		if err := lock.Unlock(t.Context()); (err == nil) != left {
			t.Errorf("our lock is in their row: %v, and its end is %v", left, err)
		}
		// A row that is ours alone they take for held, for ever.
		check(t, must(locks.TryLock(t.Context(), "new"))(t).Unlock(t.Context()))
		if _, err := open("a").AcquireLock(t.Context(), "new"); !errors.Is(err, errNotGranted) {
			t.Errorf("over a row of ours: %v", err)
		}
	})
}

// When all old programs have ended, their table can be used; what is in the rows stays.
func TestTheirTableAfterThem(t *testing.T) {
	eachClient(t, func(t *testing.T, table string, open func(string) *dynamolock) {
		old := open("a")
		must(old.ReleaseLock(t.Context(), must(old.AcquireLock(t.Context(), "report"))(t)))(t)
		must(old.AcquireLock(t.Context(), "died"))(t)
		was := raw(t, table, "key", "died")
		locks := must(mutex.New(client, table, mutex.Config{Mode: mutex.FailOpen, Key: onTheirKey}))(t)
		for _, name := range []string{"report", "died"} {
			check(t, must(locks.TryLock(t.Context(), name))(t).Unlock(t.Context()))
		}
		same(t, "their row", raw(t, table, "key", "died"), was)
		for info, err := range locks.List(t.Context()) {
			t.Errorf("listed: %+v, %v", info, err)
		}
	})
}

// What the table of the calls says of ours.
func TestTheCallsInPlaceOfTheirs(t *testing.T) {
	table := oldTable(t, "key")
	open := func(owner string) *mutex.Locker {
		return must(mutex.New(client, table, mutex.Config{Mode: mutex.FailOpen, Lease: 20 * time.Second, Heartbeat: 5 * time.Second, Owner: owner, Key: onTheirKey}))(t)
	}
	a, b := open("a"), open("b")
	lock := must(a.Lock(t.Context(), "report"))(t)
	_, err := b.TryLock(t.Context(), "report")
	var locked *repo.LockedError
	if !errors.As(err, &locked) || !errors.Is(err, repo.ErrLocked) {
		t.Errorf("TryLock of what is held: %v", err)
	}
	check(t, lock.SetPayload(t.Context(), []byte("line 7")))
	info := must(b.Inspect(t.Context(), "report"))(t)
	if info.Owner != "a" || string(info.Payload) != "line 7" || info.Lease != 20*time.Second || info.Token != lock.Token() {
		t.Errorf("Inspect gives %+v", info)
	}
	check(t, lock.Extend(t.Context()))
	if lock.Until().Before(time.Now()) || lock.Context().Err() != nil {
		t.Error("the lock is over")
	}
	check(t, lock.Unlock(t.Context()))
	next := must(b.Lock(t.Context(), "report"))(t)
	if string(next.Payload()) != "line 7" || next.Token() <= lock.Token() {
		t.Errorf("the next holder finds %q under the token %d after %d", next.Payload(), next.Token(), lock.Token())
	}
	check(t, a.Break(t.Context(), "report", next.Token()))
	if err := next.Extend(t.Context()); !errors.Is(err, repo.ErrLockLost) {
		t.Errorf("a broken lock: %v", err)
	}
	check(t, a.Close(t.Context()))
}

package mutex_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

// entries are the places in the queue on a row, the holder's own among them.
func (b bench) entries(t testing.TB, name string) (all []string) {
	t.Helper()
	list, _ := b.row(t, name)["lockQueue"].(*types.AttributeValueMemberL)
	if list == nil {
		return nil
	}
	for _, v := range list.Value {
		if e, ok := v.(*types.AttributeValueMemberB); ok {
			all = append(all, string(e.Value))
		}
	}
	return all
}

// queued waits until n stand in the queue on a row.
func (b bench) queued(t testing.TB, name string, n int) {
	t.Helper()
	rig.Await(t, fmt.Sprintf("%d stand in the queue", n), func() bool { return len(b.entries(t, name)) >= n })
}

// soon bounds what must not take long, generously: a machine may be starved.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// wantEnded demands that nobody holds a name or waits for it, and that the row of a
// fail-closed lock has gone with it.
func wantEnded(t *testing.T, b bench, cfg mutex.Config, name string) {
	t.Helper()
	wantFree(t, b, cfg, name)
	if all := b.entries(t, name); len(all) > 0 {
		t.Errorf("entries are left: %v", all)
	}
}

// Where nobody waits, a lock and its unlock are two requests, as without Fair.
func TestFairAlone(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l, last := b.locker(t, cfg), int64(0)
		for range 3 {
			rig.Is(t, l.Do(t.Context(), "printer", func(_ context.Context, lock *mutex.Lock) error {
				if lock.Token() <= last {
					t.Errorf("token %d after %d", lock.Token(), last)
				}
				last = lock.Token()
				return nil
			}))
			wantEnded(t, b, cfg, "printer")
		}
		rig.Equal(t, b.Count.Total(), 6, "requests for three locks: %v", b.Count.Counts())
	})
}

// Callers of one locker pass the lock on among themselves, and to the process that
// waits in the queue after a bounded number of hands; then they stand in it.
func TestFairLineLetsTheQueueIn(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		group, other := b.locker(t, cfg), b.locker(t, cfg)
		held := rig.Must(other.Lock(t.Context(), "printer"))(t)
		const callers = 12
		var order []string // guarded by the lock under test
		var all sync.WaitGroup
		take := func(l *mutex.Locker, who string) {
			all.Go(func() {
				rig.Is(t, l.Do(soon(t), "printer", func(context.Context, *mutex.Lock) error {
					order = append(order, who)
					return nil
				}))
			})
		}
		for i := range callers {
			take(group, "c")
			rig.Await(t, "it stands in line", func() bool { return group.Waiting("printer") == i })
		}
		b.queued(t, "printer", 2)
		take(other, "o")
		rig.Await(t, "it stands in line", func() bool { return other.Waiting("printer") == 1 })
		second := b.locker(t, cfg)
		take(second, "s")
		b.queued(t, "printer", 3)
		b.Count.Reset()
		rig.Is(t, held.Unlock(t.Context()))
		all.Wait()
		if at := slices.Index(order, "s"); at < 0 || at > 10 { // behind the own one of the holder, the first of the group, and eight hands
			t.Errorf("served in the order %v", order)
		}
		wantEnded(t, b, cfg, "printer")
	})
}

// Attempts bound the looks of one who waits, and not the try at a lock that is free.
func TestFairAttempts(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		_, err := b.locker(t, mutex.Config{Mode: cfg.Mode, Fair: true, Wait: repo.Wait{Attempts: 2}}).TryLock(t.Context(), "printer")
		rig.Is(t, err)
		cfg.Wait = repo.Wait{Attempts: 3}
		_, err = b.locker(t, cfg).Lock(t.Context(), "printer")
		rig.Is(t, err, repo.ErrLocked)
	})
}

// An operator sees who waits, also for a lock that was handed over; a hold that is ended
// by force goes to the first who waits, under a greater token.
func TestFairAndOperators(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		for name, end := range map[string]func(l *mutex.Locker, held *mutex.Lock) error{
			"break":   func(l *mutex.Locker, held *mutex.Lock) error { return l.Break(t.Context(), "break", held.Token()) },
			"release": func(l *mutex.Locker, held *mutex.Lock) error { return l.Release(t.Context(), "release", held.ID()) },
		} {
			held := rig.Must(b.locker(t, cfg).Lock(t.Context(), name))(t)
			operator := b.locker(t, cfg)
			if info := rig.Must(operator.Inspect(t.Context(), name))(t); len(info.Waiting) != 0 || info.Token != held.Token() || info.Handed {
				t.Errorf("alone: %+v", info)
			}
			got := make(chan *mutex.Lock, 1)
			waiter := b.locker(t, mutex.Config{Mode: cfg.Mode, Fair: true, Owner: "waiter"})
			go func() { got <- rig.Must(waiter.Lock(soon(t), name))(t) }()
			b.queued(t, name, 2)
			for info, err := range operator.List(t.Context()) {
				if rig.Is(t, err); info.Key.Partition == name && (len(info.Waiting) != 1 || info.Mode != cfg.Mode) {
					t.Errorf("with one who waits: %+v", info)
				}
			}
			rig.Is(t, end(operator, held))
			next := <-got
			if next.Token() <= held.Token() || next.Token() > held.Token()+10 { // those of one life of the row are close
				t.Errorf("%s: token %d after %d", name, next.Token(), held.Token())
			}
			if info := rig.Must(operator.Inspect(t.Context(), name))(t); info.Owner != "waiter" || info.Mode != cfg.Mode || len(info.Waiting) > 0 {
				t.Errorf("%s: taken: %+v", name, info)
			}
			rig.Is(t, held.Unlock(t.Context()), repo.ErrLockLost)
			rig.Is(t, next.Unlock(t.Context()))
			wantEnded(t, b, cfg, name)
		}
	})
}

// A release by id takes the entry of whoever held the lock along: the next one would hand
// the lock to it.
func TestFairReleaseWithNobodyWaiting(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := rig.Must(l.Lock(t.Context(), "printer"))(t)
		rig.Is(t, l.Release(t.Context(), "printer", held.ID()))
		wantEnded(t, b, cfg, "printer")
	})
}

// A fail-closed lock that came through the queue is its holder's by name and id, and has
// no end.
func TestFairClosedLockIsItsHolders(t *testing.T) {
	b := newBench(t)
	held := rig.Must(b.locker(t, mutex.Config{Fair: true}).Lock(t.Context(), "printer"))(t)
	second := b.locker(t, mutex.Config{Fair: true, Owner: "second"})
	got := make(chan *mutex.Lock, 1)
	go func() { got <- rig.Must(second.Lock(soon(t), "printer"))(t) }()
	b.queued(t, "printer", 2)
	rig.Is(t, held.Unlock(t.Context()))
	lock := <-got
	info := rig.Must(second.Inspect(t.Context(), "printer"))(t)
	if info.Owner != "second" || info.Mode != mutex.FailClosed || info.Handed || !info.Until.IsZero() || info.Since.IsZero() || !lock.Until().IsZero() {
		t.Errorf("%+v", info)
	}
	rig.Is(t, lock.Extend(t.Context()))
	rig.Is(t, second.Release(t.Context(), "printer", lock.ID()))
	wantEnded(t, b, mutex.Config{}, "printer")
}

// A group that waits for a lock for long keeps the others, and its place.
func TestGroupKeepsItsPlace(t *testing.T) {
	for _, clockless := range []bool{false, true} {
		b := newBench(t)
		var clock repotest.Clock
		cfg := mutex.Config{Mode: mutex.FailOpen, Fair: true, Clockless: clockless, Table: repo.TableConfig{Clock: clock.Now}}
		long := cfg
		long.Lease = time.Hour
		held := rig.Must(b.locker(t, long).Lock(t.Context(), "b"))(t)
		group := make(chan *mutex.Group)
		go func() { group <- rig.Must(b.locker(t, cfg).LockAll(soon(t), "b", "a"))(t) }()
		b.queued(t, "b", 2)
		place, until := b.entries(t, "b"), b.row(t, "a")["lockTime"]
		slices.Sort(place)
		clock.Advance(16 * time.Second) // more than half of the lease
		rig.Await(t, "it has extended the other one", func() bool {
			return fmt.Sprint(b.row(t, "a")["lockTime"].(*types.AttributeValueMemberN).Value) != fmt.Sprint(until.(*types.AttributeValueMemberN).Value)
		})
		now := b.entries(t, "b")
		slices.Sort(now)
		if !slices.Equal(place, now) {
			t.Errorf("clockless %v: it stood as %v, and stands as %v", clockless, place, now)
		}
		rig.Is(t, held.Unlock(t.Context()))
		g := <-group
		rig.Is(t, g.Context().Err())
		rig.Is(t, g.Unlock(t.Context()))
	}
}

package lockedread_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

func addOne(_ context.Context, s *stock) error { s.Count++; return nil }

// entries are the places in the queue on the item.
func (b bench) entries(t testing.TB) (n int) {
	t.Helper()
	list, _ := b.raw(t)["lockQueue"].(*types.AttributeValueMemberL)
	if list == nil {
		return 0
	}
	for _, v := range list.Value {
		if _, entry := v.(*types.AttributeValueMemberB); entry {
			n++
		}
	}
	return n
}

// wantClean fails the test unless nobody holds the item or waits for it.
func wantClean(t testing.TB, b bench) {
	t.Helper()
	item := b.raw(t)
	if item["lockedBy"] != nil || item["lockTime"] != nil || b.entries(t) != 0 {
		t.Errorf("left on the item: %v", item)
	}
}

// queued waits until n stand in the queue on the item.
func (b bench) queued(t testing.TB, n int) {
	t.Helper()
	rig.Await(t, fmt.Sprintf("%d stand in the queue", n), func() bool { return b.entries(t) >= n })
}

// soon bounds what must not take long, generously: a machine may be starved.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestFairAlone(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{Fair: true})
	for range 3 {
		if _, err := l.Update(t.Context(), key, addOne); err != nil {
			t.Fatal(err)
		}
	}
	rig.Equal(t, b.Count.Total(), 6, "requests for three changes")
	h := rig.Must(l.Acquire(t.Context(), key))(t)
	before := h.Token()
	rig.Is(t, h.Release(t.Context()))
	if h = acquire(t, l); h.Token() <= before {
		t.Errorf("token %d after %d", h.Token(), before)
	}
	rig.Is(t, h.Release(t.Context()))
	wantCount(t, b, 13)
	wantClean(t, b)
}

// TestFairWastesNothing: processes in a closed loop, each with a locker of its
// own, so that nothing is passed on within a process.
func TestFairWastesNothing(t *testing.T) {
	workers, rounds := 12, rig.Share(3, 8)
	b := newBench(t)
	ctx := soon(t)
	var done sync.WaitGroup
	for range workers {
		l := b.locker(t, lockedread.Config{Fair: true})
		done.Go(func() {
			for range rounds {
				if _, err := l.Update(ctx, key, addOne); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done.Wait()
	wantCount(t, b, 10+workers*rounds)
	wantClean(t, b)
	// A release may meet a newcomer where nobody was known to wait: at the
	// beginning, and when the queue has become short.
	if got, least := b.Count.Count("UpdateItem"), 2*workers*rounds; got > least+workers {
		t.Errorf("%d writes for %d changes", got, workers*rounds)
	}
}

func TestFairGivesUp(t *testing.T) {
	b := newBench(t)
	holder := acquire(t, b.locker(t, lockedread.Config{Owner: "worker-1"}))
	ctx := rig.Shortly(t)
	var locked *repo.LockedError
	_, err := b.locker(t, lockedread.Config{Fair: true}).Acquire(ctx, key)
	if !errors.Is(err, repo.ErrLocked) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &locked) || locked.Owner != "worker-1" {
		t.Errorf("error %v", err)
	}
	_, err = b.locker(t, lockedread.Config{Fair: true, Wait: repo.Wait{Attempts: 3}}).Acquire(t.Context(), key)
	rig.Is(t, err, repo.ErrLocked)
	rig.Equal(t, b.entries(t), 0, "entries are left")
	rig.Is(t, holder.Release(t.Context()))
	_, err = b.locker(t, lockedread.Config{Fair: true}).Acquire(t.Context(), repo.Key{Partition: "pear"})
	rig.Is(t, err, repo.ErrNotFound)
	wantClean(t, b)
}

// TestFairClaims: what was handed over for a grace is kept for as long as its
// holder needs, with and without renewal.
func TestFairClaims(t *testing.T) {
	for _, clockless := range []bool{false, true} {
		b := newBench(t)
		inVirtualTime(t, func(t *testing.T, network fault.Doer) {
			cfg := lockedread.Config{Fair: true, Lease: 4 * time.Second, Clockless: clockless, ClockSkew: -1}
			first := acquire(t, b.over(t, network, cfg))
			second := b.over(t, network, cfg)
			if clockless {
				second.SetClock(time.Hour)
			}
			waiting := make(chan *lockedread.Held[stock])
			go func() {
				h, err := second.Acquire(t.Context(), key)
				rig.Is(t, err)
				waiting <- h
			}()
			synctest.Wait() // it stands in the queue
			rig.Is(t, first.Release(t.Context()))
			h := <-waiting
			third := b.over(t, network, cfg)
			last := make(chan error, 1)
			go func() {
				_, err := third.Update(t.Context(), key, addOne)
				last <- err
			}()
			time.Sleep(2200 * time.Millisecond) // more than two graces, less than the lease
			item := h.Item()
			item.Count = 20
			if _, err := h.Commit(t.Context(), item); err != nil {
				t.Errorf("clockless %v: %v", clockless, err)
			}
			rig.Is(t, <-last)
		})
		wantCount(t, b, 21)
		wantClean(t, b)
	}
}

// TestFairLeasesDiffer: a grace is that of whoever handed the lock over.
func TestFairLeasesDiffer(t *testing.T) {
	b := newBench(t)
	first := acquire(t, b.locker(t, lockedread.Config{Fair: true, Lease: 3 * time.Second}))
	second := b.locker(t, lockedread.Config{Fair: true, Lease: time.Hour})
	waiting := make(chan time.Duration, 1)
	go func() {
		h, err := second.Acquire(soon(t), key)
		rig.Is(t, err)
		left := time.Until(h.Until())
		rig.Is(t, h.Release(t.Context()))
		waiting <- left
	}()
	b.queued(t, 1)
	rig.Is(t, first.Release(t.Context()))
	if left := <-waiting; left > 750*time.Millisecond && left < time.Minute { // a minute: it was claimed at once
		t.Errorf("%v are left of a grace of 750 ms", left)
	}
	wantClean(t, b)
}

func TestFairNewItems(t *testing.T) {
	b := newBench(t)
	pear := repo.Key{Partition: "pear"}
	ctx := soon(t)
	var done sync.WaitGroup
	for range 5 {
		l := b.locker(t, lockedread.Config{Fair: true})
		done.Go(func() {
			if _, err := l.Upsert(ctx, pear, addOne); err != nil {
				t.Error(err)
			}
			if _, err := l.Upsert(ctx, pear, func(context.Context, *stock) error { return repo.Remove }); err != nil {
				t.Error(err)
			}
			if _, err := l.Upsert(ctx, pear, addOne); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	if got, err := b.tableOf(t).Get(t.Context(), pear); err != nil || got.Count < 1 || got.Count > 10 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFairEntriesAreReserved(t *testing.T) {
	b := newBench(t)
	type mapped struct {
		ID string `dynamodbav:"id" repo:"pk"`
		N  int    `dynamodbav:"lockQueue"`
	}
	_, err := repo.NewTable[mapped](b.Client, b.Table, repo.TableConfig{})
	rig.Is(t, err, repo.ErrSchema)
	if _, err = repo.NewTable[mapped](b.Client, b.Table, repo.TableConfig{Attributes: repo.Attributes{LockQueue: "line"}}); err != nil {
		t.Error(err)
	}
	// What is no list of places is somebody else's: nobody can stand there, and who does not
	// want to leaves it alone.
	for _, foreign := range []types.AttributeValue{
		&types.AttributeValueMemberS{Value: "x"},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "x"}}},
		&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: []byte("xxxxx")}}},
	} {
		b.put(t, map[string]types.AttributeValue{"lockQueue": foreign})
		_, err = b.locker(t, lockedread.Config{Fair: true}).Update(t.Context(), key, addOne)
		rig.Is(t, err, repo.ErrSchema)
		_, err = b.locker(t, lockedread.Config{Race: true}).Update(t.Context(), key, addOne)
		rig.Is(t, err)
		if now := b.raw(t)["lockQueue"]; !ddb.Equal(now, foreign) {
			t.Errorf("%v has become %v", foreign, now)
		}
	}
}

package lockedread_test

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

func TestLockedChangeIsTwoRequests(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Renew: true}))
	item := h.Item()
	item.Count--
	if _, err := h.Commit(t.Context(), item); err != nil {
		t.Fatal(err)
	}
	if n := b.count.Counts(); n["UpdateItem"] != 2 || b.count.Total() != 2 {
		t.Errorf("requests %v, want two UpdateItem", n)
	}
	wantCount(t, b, 9)
}

func TestHeldItemTellsWhoHoldsIt(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Owner: "till 1"}))
	defer h.Release(t.Context()) //nolint:errcheck // the test is over
	b.count.Reset()
	_, err := b.locker(t, lockedread.Config{}).TryAcquire(t.Context(), key)
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "till 1" || locked.Token != h.Token() || time.Until(locked.Until) < 20*time.Second {
		t.Errorf("%v (%+v)", err, locked)
	}
	if b.count.Total() != 1 {
		t.Errorf("%d requests, want 1", b.count.Total())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = b.locker(t, lockedread.Config{}).Acquire(ctx, key)
	wantIs(t, err, repo.ErrLocked)
	wantIs(t, err, context.DeadlineExceeded)
	_, err = b.locker(t, lockedread.Config{Wait: repo.Wait{Attempts: 2}}).Acquire(t.Context(), key)
	wantIs(t, err, repo.ErrLocked)
}

func TestWaiterGetsTheReleasedLock(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{}))
	got := make(chan error, 1)
	waiter := b.locker(t, lockedread.Config{})
	b.count.Reset()
	go func() {
		h, err := waiter.Acquire(t.Context(), key)
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	for b.count.Total() == 0 { // it has tried at least once
		runtime.Gosched()
	}
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestTakeoverOfAnExpiredHold(t *testing.T) {
	b := newBench(t)
	old := acquire(t, b.locker(t, lockedread.Config{}))
	later := b.locker(t, lockedread.Config{})
	later.SetClock(lockedread.Ahead(40 * time.Second))
	h := acquire(t, later)
	if h.Token() != old.Token()+1 {
		t.Errorf("token %d after %d", h.Token(), old.Token())
	}
	item := old.Item()
	item.Count = 0
	_, err := old.Commit(t.Context(), item)
	wantIs(t, err, repo.ErrLockLost)
	if cause := context.Cause(old.Context()); !errors.Is(cause, repo.ErrLockLost) {
		t.Errorf("cause %v", cause)
	}
	wantIs(t, old.Extend(t.Context()), repo.ErrLockLost)
	wantIs(t, old.Release(t.Context()), repo.ErrLockLost)
	wantIs(t, old.Delete(t.Context()), repo.ErrLockLost)
	item = h.Item()
	item.Count = 7
	if _, err := h.Commit(t.Context(), item); err != nil {
		t.Error(err)
	}
	wantCount(t, b, 7)
}

func TestSkewAllowanceKeepsAFastClockOut(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{}))
	fast := b.locker(t, lockedread.Config{ClockSkew: 10 * time.Minute})
	fast.SetClock(lockedread.Ahead(5 * time.Minute))
	_, err := fast.TryAcquire(t.Context(), key)
	wantIs(t, err, repo.ErrLocked)
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCommitAfterTheLease(t *testing.T) {
	for late, want := range map[bool]error{false: repo.ErrLockExpired, true: nil} {
		b := newBench(t)
		l := b.locker(t, lockedread.Config{LateCommit: late})
		h := acquire(t, l)
		l.SetClock(lockedread.Ahead(time.Minute)) // the lease is over, nobody took over
		item := h.Item()
		item.Count++
		_, err := h.Commit(t.Context(), item)
		if !errors.Is(err, want) {
			t.Errorf("LateCommit %v: %v", late, err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if raw := b.raw(t); raw["lockedBy"] != nil {
			t.Error("still locked after Release")
		}
		wantCount(t, b, map[bool]int{false: 10, true: 11}[late])
	}
}

func TestEndedHolds(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{})
	h := acquire(t, l)
	item, err := h.Commit(t.Context(), h.Item())
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.Commit(t.Context(), item)
	wantIs(t, err, repo.ErrReleased)
	wantIs(t, h.Extend(t.Context()), repo.ErrReleased)
	wantIs(t, h.Delete(t.Context()), repo.ErrReleased)
	wantIs(t, context.Cause(h.Context()), repo.ErrReleased)
	b.count.Reset()
	if err := h.Release(t.Context()); err != nil || b.count.Total() != 0 {
		t.Errorf("Release after Commit: %v, %d requests", err, b.count.Total())
	}
}

func TestBreak(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{Lease: time.Second, Renew: true})
	h := acquire(t, l)
	wantIs(t, l.Break(t.Context(), key, h.Token()+1), repo.ErrNotHeld)
	wantIs(t, l.Break(t.Context(), repo.Key{Partition: "pear"}, 1), repo.ErrNotFound)
	if err := l.Break(t.Context(), key, h.Token()); err != nil {
		t.Fatal(err)
	}
	wantIs(t, l.Break(t.Context(), key, h.Token()), repo.ErrNotHeld)
	<-h.Context().Done() // the next renewal finds out
	wantIs(t, context.Cause(h.Context()), repo.ErrLockLost)
	_, err := h.Commit(t.Context(), stock{ID: "apple"})
	wantIs(t, err, repo.ErrLockLost)
	wantCount(t, b, 10)
}

func TestRenewalKeepsALongHold(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Lease: time.Second, Renew: true}))
	first, end := h.Until(), time.Now().Add(3*time.Second)
	for time.Now().Before(end) {
		select {
		case <-h.Context().Done():
			t.Fatal(context.Cause(h.Context()))
		case <-time.After(50 * time.Millisecond):
		}
	}
	if !h.Until().After(first.Add(time.Second)) {
		t.Errorf("deadline moved from %v to %v only", first, h.Until())
	}
	if _, err := h.Commit(t.Context(), stock{ID: "apple", Count: 3}); err != nil {
		t.Fatal(err)
	}
	wantCount(t, b, 3)
}

func TestWithoutRenewalTheDeadlineEndsTheContext(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Lease: time.Second}))
	<-h.Context().Done()
	wantIs(t, context.Cause(h.Context()), repo.ErrLockExpired)
	if time.Now().Before(h.Until()) {
		t.Error("ended before the deadline")
	}
	if n := b.count.Total(); n != 1 {
		t.Errorf("%d requests, want the acquire alone", n)
	}
	wantIs(t, h.Extend(t.Context()), repo.ErrLockExpired)
}

func TestExtendMovesTheDeadline(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{}))
	before := h.Until()
	token := h.Token()
	if err := h.Extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !h.Until().After(before) || h.Token() != token {
		t.Errorf("until %v -> %v, token %d -> %d", before, h.Until(), token, h.Token())
	}
}

func TestFailingRenewalEndsTheContextInTime(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Lease: time.Second, Renew: true}))
	b.faults(func(string, int, []byte) fault.Kind { return fault.Refuse })
	<-h.Context().Done()
	wantIs(t, context.Cause(h.Context()), repo.ErrLockExpired)
}

func TestClocklessTakesOverOnlyWhatItWatched(t *testing.T) {
	b := newBench(t)
	dead := b.locker(t, lockedread.Config{Lease: time.Second})
	dead.SetClock(lockedread.Ahead(time.Hour)) // its times mean nothing to others
	acquire(t, dead)
	l := b.locker(t, lockedread.Config{Clockless: true})
	l.SetClock(lockedread.Ahead(-time.Hour))
	began := time.Now()
	h, err := l.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("took over after %v, less than the lease", waited)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}

	// A clock far ahead is no reason to take a live hold.
	live := acquire(t, b.locker(t, lockedread.Config{}))
	l.SetClock(lockedread.Ahead(time.Hour))
	_, err = l.TryAcquire(t.Context(), key)
	wantIs(t, err, repo.ErrLocked)
	if _, err := live.Commit(t.Context(), live.Item()); err != nil {
		t.Error(err)
	}
}

// A hold that was watched for its full lease may end just before the watcher's
// takeover: the watcher must then take the free lock, not wait for the hold
// that is gone. (Found by the faulted runs.)
func TestClocklessTakesAFreeLockInsteadOfAGoneHold(t *testing.T) {
	b, other := newBench(t), engine.Client()
	acquire(t, b.locker(t, lockedread.Config{Lease: time.Second}))
	b.faults(func(_ string, _ int, body []byte) fault.Kind {
		if bytes.Contains(body, []byte("seenHeld")) {
			_, err := other.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.table,
				Key:              map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}},
				UpdateExpression: aws.String("REMOVE lockedBy, lockTime, lockLease, lockHeld")})
			if err != nil {
				t.Error(err)
			}
			b.faults(nil)
		}
		return fault.None
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	h, err := b.locker(t, lockedread.Config{Clockless: true}).Acquire(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIdleHoldsCostNoGoroutine(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{Renew: true})
	const holds = 100
	acquireNew := func(i int) *lockedread.Held[stock] {
		h, err := l.AcquireOrCreate(t.Context(), repo.Key{Partition: "k" + strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	all := []*lockedread.Held[stock]{acquireNew(0)}
	before := runtime.NumGoroutine()
	for i := 1; i < holds; i++ {
		all = append(all, acquireNew(i))
	}
	if grown := runtime.NumGoroutine() - before; grown > holds/10 {
		t.Errorf("%d goroutines more with %d holds more", grown, holds-1)
	}
	for _, h := range all {
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	out, err := b.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.table})
	if err != nil || out.Count != 1 {
		t.Errorf("%d items (%v): released stubs stayed behind", out.Count, err)
	}
}

func TestTokensGrowAcrossDeletion(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{})
	last := int64(0)
	for range 3 {
		h := acquire(t, l)
		if h.Token() <= last {
			t.Errorf("token %d after %d", h.Token(), last)
		}
		last = h.Token()
		if err := h.Delete(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.put(t, nil)
	}
}

func TestStubsAreInvisible(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{})
	pear := repo.Key{Partition: "pear"}
	h, err := l.AcquireOrCreate(t.Context(), pear)
	if err != nil {
		t.Fatal(err)
	}
	if h.Exists() {
		t.Error("Exists is true for a new item")
	}
	table := b.tableOf(t)
	_, err = table.Get(t.Context(), pear)
	wantIs(t, err, repo.ErrNotFound)
	for item, err := range table.Query(t.Context(), "pear") {
		t.Errorf("query shows %+v, %v", item, err)
	}
	_, err = l.TryAcquire(t.Context(), pear)
	wantIs(t, err, repo.ErrNotFound)
	if info, err := table.Inspect(t.Context(), pear); err != nil || !info.Held || !info.Stub || info.Token != h.Token() {
		t.Errorf("Inspect: %+v, %v", info, err)
	}
	if _, err := h.Commit(t.Context(), stock{ID: "pear", Count: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := table.Get(t.Context(), pear); err != nil || got.Count != 1 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestLockAttributesOfAWrongType(t *testing.T) {
	for name, v := range map[string]types.AttributeValue{
		"lockTime":  &types.AttributeValueMemberS{Value: "1700000000"},
		"lockedBy":  &types.AttributeValueMemberN{Value: "7"},
		"lockToken": &types.AttributeValueMemberS{Value: "x"},
	} {
		b := newBench(t)
		b.put(t, map[string]types.AttributeValue{name: v})
		_, err := b.locker(t, lockedread.Config{}).TryAcquire(t.Context(), key)
		if name == "lockedBy" {
			continue // overwritten by the acquire, as the article would
		}
		if err == nil {
			t.Errorf("%s as %T: locked", name, v)
		}
		wantIs(t, err, repo.ErrSchema)
	}
}

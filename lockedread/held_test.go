package lockedread_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
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
	if n := b.Count.Counts(); n["UpdateItem"] != 2 || b.Count.Total() != 2 {
		t.Errorf("requests %v, want two UpdateItem", n)
	}
	wantCount(t, b, 9)
}

func TestHeldItemTellsWhoHoldsIt(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Owner: "till 1"}))
	defer h.Release(t.Context()) //nolint:errcheck // the test is over
	b.Count.Reset()
	_, err := b.locker(t, lockedread.Config{}).TryAcquire(t.Context(), key)
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "till 1" || locked.Token != h.Token() || time.Until(locked.Until) < 20*time.Second {
		t.Errorf("%v (%+v)", err, locked)
	}
	rig.Equal(t, b.Count.Total(), 1, "requests")
	_, err = b.locker(t, lockedread.Config{}).Acquire(rig.Shortly(t), key)
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.DeadlineExceeded)
	_, err = b.locker(t, lockedread.Config{Wait: repo.Wait{Attempts: 2}}).Acquire(t.Context(), key)
	rig.Is(t, err, repo.ErrLocked)
}

func TestWaiterGetsTheReleasedLock(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{}))
	got := make(chan error, 1)
	waiter := b.locker(t, lockedread.Config{})
	b.Count.Reset()
	go func() {
		h, err := waiter.Acquire(t.Context(), key)
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	rig.Await(t, "it has tried once", func() bool { return b.Count.Total() > 0 })
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestEndedHolds(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{})
	h := acquire(t, l)
	item := rig.Must(h.Commit(t.Context(), h.Item()))(t)
	_, err := h.Commit(t.Context(), item)
	rig.Is(t, err, repo.ErrReleased)
	rig.Is(t, h.Extend(t.Context()), repo.ErrReleased)
	rig.Is(t, h.Delete(t.Context()), repo.ErrReleased)
	rig.Is(t, context.Cause(h.Context()), repo.ErrReleased)
	b.Count.Reset()
	if err := h.Release(t.Context()); err != nil || b.Count.Total() != 0 {
		t.Errorf("Release after Commit: %v, %d requests", err, b.Count.Total())
	}
}

func TestBreak(t *testing.T) {
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		l := b.over(t, network, lockedread.Config{Lease: 6 * time.Second, Renew: true})
		h := acquire(t, l)
		rig.Is(t, l.Break(t.Context(), key, h.Token()+1), repo.ErrNotHeld)
		rig.Is(t, l.Break(t.Context(), repo.Key{Partition: "pear"}, 1), repo.ErrNotFound)
		if err := l.Break(t.Context(), key, h.Token()); err != nil {
			t.Fatal(err)
		}
		rig.Is(t, l.Break(t.Context(), key, h.Token()), repo.ErrNotHeld)
		rig.Is(t, rig.Ended(h.Context(), t), repo.ErrLockLost) // the next renewal finds out
		_, err := h.Commit(t.Context(), stock{ID: "apple"})
		rig.Is(t, err, repo.ErrLockLost)
	})
	wantCount(t, b, 10)
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
	h := rig.Must(l.AcquireOrCreate(t.Context(), pear))(t)
	if h.Exists() {
		t.Error("Exists is true for a new item")
	}
	table := b.tableOf(t)
	_, err := table.Get(t.Context(), pear)
	rig.Is(t, err, repo.ErrNotFound)
	for item, err := range table.Query(t.Context(), "pear") {
		t.Errorf("query shows %+v, %v", item, err)
	}
	_, err = l.TryAcquire(t.Context(), pear)
	rig.Is(t, err, repo.ErrNotFound)
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
		rig.Is(t, err, repo.ErrSchema)
	}
}

// The context may end in the middle of a try: the caller still learns for whom
// it waited, nothing is called unknown, and no lock stays behind.
func TestContextThatEndsInTheMiddleOfATry(t *testing.T) {
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Owner: "till 1"}))
	ctx, cancel := context.WithCancel(t.Context())
	b.Faults(func(string, int, []byte) fault.Kind {
		if b.Count.Total() < 3 {
			return fault.None
		}
		b.Faults(nil)
		cancel()
		return fault.LoseResponse
	})
	b.Count.Reset()
	_, err := b.locker(t, lockedread.Config{}).Acquire(ctx, key)
	rig.Is(t, err, repo.ErrLocked)
	rig.Is(t, err, context.Canceled)
	if errors.Is(err, repo.ErrOutcomeUnknown) {
		t.Errorf("called unknown: %v", err)
	}
	if _, err := h.Commit(t.Context(), h.Item()); err != nil {
		t.Error(err)
	}
	if raw := b.raw(t); raw["lockedBy"] != nil {
		t.Error("a lock stayed behind")
	}
}

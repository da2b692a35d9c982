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
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

func TestTakeoverOfAnExpiredHold(t *testing.T) {
	b := newBench(t)
	old := acquire(t, b.locker(t, lockedread.Config{}))
	later := b.locker(t, lockedread.Config{})
	later.SetClock(40 * time.Second)
	h := acquire(t, later)
	rig.Equal(t, h.Token(), old.Token()+1, "token after %d", old.Token())
	item := old.Item()
	item.Count = 0
	_, err := old.Commit(t.Context(), item)
	rig.Is(t, err, repo.ErrLockLost)
	if cause := context.Cause(old.Context()); !errors.Is(cause, repo.ErrLockLost) {
		t.Errorf("cause %v", cause)
	}
	rig.Is(t, old.Extend(t.Context()), repo.ErrLockLost)
	rig.Is(t, old.Release(t.Context()), repo.ErrLockLost)
	rig.Is(t, old.Delete(t.Context()), repo.ErrLockLost)
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
	fast.SetClock(5 * time.Minute)
	_, err := fast.TryAcquire(t.Context(), key)
	rig.Is(t, err, repo.ErrLocked)
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCommitAfterTheLease(t *testing.T) {
	for late, want := range map[bool]error{false: repo.ErrLockExpired, true: nil} {
		b := newBench(t)
		l := b.locker(t, lockedread.Config{LateCommit: late})
		h := acquire(t, l)
		l.SetClock(time.Minute) // the lease is over, nobody took over
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

func TestRenewalKeepsALongHold(t *testing.T) {
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		const lease = 3 * time.Second
		h := acquire(t, b.over(t, network, lockedread.Config{Lease: lease, Renew: true}))
		first := h.Until()
		const long = 20 * lease
		select {
		case <-h.Context().Done():
			t.Fatal(context.Cause(h.Context()))
		case <-time.After(long):
		}
		if !h.Until().After(first.Add(long - lease)) {
			t.Errorf("deadline moved from %v to %v only", first, h.Until())
		}
		if _, err := h.Commit(t.Context(), stock{ID: "apple", Count: 3}); err != nil {
			t.Fatal(err)
		}
	})
	wantCount(t, b, 3)
}

func TestWithoutRenewalTheDeadlineEndsTheContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Lease: time.Second}))
	rig.Is(t, rig.Ended(h.Context(), t), repo.ErrLockExpired)
	if time.Now().Before(h.Until()) {
		t.Error("ended before the deadline")
	}
	if n := b.Count.Total(); n != 1 {
		t.Errorf("%d requests, want the acquire alone", n)
	}
	rig.Is(t, h.Extend(t.Context()), repo.ErrLockExpired)
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
	t.Parallel()
	b := newBench(t)
	h := acquire(t, b.locker(t, lockedread.Config{Lease: time.Second, Renew: true}))
	b.Always(fault.Refuse)
	rig.Is(t, rig.Ended(h.Context(), t), repo.ErrLockExpired)
}

func TestClocklessTakesOverOnlyWhatItWatched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dead := b.locker(t, lockedread.Config{Lease: time.Second})
	dead.SetClock(time.Hour) // its times mean nothing to others
	acquire(t, dead)
	l := b.locker(t, lockedread.Config{Clockless: true})
	l.SetClock(-time.Hour)
	began := time.Now()
	h := rig.Must(l.Acquire(t.Context(), key))(t)
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("took over after %v, less than the lease", waited)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}

	// A clock far ahead is no reason to take a live hold.
	live := acquire(t, b.locker(t, lockedread.Config{}))
	l.SetClock(time.Hour)
	_, err := l.TryAcquire(t.Context(), key)
	rig.Is(t, err, repo.ErrLocked)
	if _, err := live.Commit(t.Context(), live.Item()); err != nil {
		t.Error(err)
	}
}

// A hold that was watched for its full lease may end just before the watcher's
// takeover: the watcher must then take the free lock, not wait for the hold
// that is gone. (Found by the faulted runs.)

func TestClocklessTakesAFreeLockInsteadOfAGoneHold(t *testing.T) {
	t.Parallel()
	b, other := newBench(t), rig.Client()
	acquire(t, b.locker(t, lockedread.Config{Lease: time.Second}))
	b.Faults(func(_ string, _ int, body []byte) fault.Kind {
		if bytes.Contains(body, []byte("seenHeld")) {
			_, err := other.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: &b.Table,
				Key:              map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "apple"}},
				UpdateExpression: aws.String("REMOVE lockedBy, lockTime, lockLease, lockHeld")})
			if err != nil {
				t.Error(err)
			}
			b.Faults(nil)
		}
		return fault.None
	})
	h := rig.Must(b.locker(t, lockedread.Config{Clockless: true}).Acquire(soon(t), key))(t)
	if err := h.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestIdleHoldsCostNoGoroutine(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, lockedread.Config{Renew: true})
	const holds = 100
	acquireNew := func(i int) *lockedread.Held[stock] {
		h := rig.Must(l.AcquireOrCreate(t.Context(), repo.Key{Partition: "k" + strconv.Itoa(i)}))(t)
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
	out, err := b.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.Table})
	if err != nil || out.Count != 1 {
		t.Errorf("%d items (%v): released stubs stayed behind", out.Count, err)
	}
}

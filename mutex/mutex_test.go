package mutex_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// The names of the tests carry the rows of the systems that the package serves:
// S2 is the lock client with fencing tokens, S3 acquire and release with an id.

func TestS2_1_FailClosedStaysUntilSomebodyIntervenes(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	dead := lock(t, l, "job")
	for _, cfg := range []mutex.Config{{}, {Mode: mutex.FailOpen, Lease: time.Second, ClockSkew: -1}} {
		other := b.locker(t, cfg)
		other.SetClock(1000 * time.Hour) // no clock takes it over
		_, err := other.TryLock(t.Context(), "job")
		rig.Is(t, err, repo.ErrLocked)
	}
	rig.Is(t, l.Break(t.Context(), "job", dead.Token()))
	next := lock(t, l, "job")
	if next.Token() <= dead.Token() {
		t.Errorf("token %d after %d", next.Token(), dead.Token())
	}
	rig.Is(t, dead.Unlock(t.Context()), repo.ErrLockLost, repo.ErrLocked)
	rig.Is(t, next.Unlock(t.Context()))
	if row := b.row(t, "job"); row != nil {
		t.Errorf("release left the row %v", slices.Collect(maps.Keys(row)))
	}
}

func TestS2_1_AWatcherNeverTakesOverAFailClosedHold(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lock(t, b.locker(t, mutex.Config{}), "job")
	watcher := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second, Clockless: true})
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond) // more than the watcher's own lease
	defer cancel()
	_, err := watcher.Lock(ctx, "job")
	rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
}

func TestS2_1_ARowThatIsMoreThanALockStays(t *testing.T) {
	b := newBench(t)
	_, err := b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: map[string]types.AttributeValue{
		"name": &types.AttributeValueMemberS{Value: "user-7"}, "mail": &types.AttributeValueMemberS{Value: "a@b.c"}}})
	rig.Is(t, err)
	l := b.locker(t, mutex.Config{})
	for name, release := range map[string]func(held *mutex.Lock) error{
		"by handle": func(held *mutex.Lock) error { return held.Unlock(t.Context()) },
		"by id":     func(held *mutex.Lock) error { return l.Release(t.Context(), "user-7", held.ID()) },
	} {
		rig.Is(t, release(lock(t, l, "user-7")))
		if row := b.row(t, "user-7"); row["mail"] == nil || row["lockedBy"] != nil {
			t.Errorf("%s: the row is %v", name, row)
		}
	}
}

func TestS2_3_TokensGrowWithEveryAcquisition(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l, last := b.locker(t, cfg), int64(0)
		grows := func(held *mutex.Lock) {
			t.Helper()
			if held.Token() <= last {
				t.Errorf("token %d after %d", held.Token(), last)
			}
			last = held.Token()
		}
		for range 3 { // over releases
			held := lock(t, l, "job")
			grows(held)
			rig.Is(t, held.Extend(t.Context()))
			rig.Is(t, held.Unlock(t.Context()))
		}
		_, err := b.Client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &b.Table,
			Key: map[string]types.AttributeValue{"name": &types.AttributeValueMemberS{Value: "job"}}})
		rig.Is(t, err)
		held := lock(t, l, "job") // over a deletion of the row
		grows(held)
		rig.Is(t, l.Break(t.Context(), "job", held.Token()))
		grows(lock(t, l, "job")) // over a break
	})
}

func TestS2_4_OwnerAttemptsAndWaiting(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{Owner: "worker-3", Race: true, Wait: repo.Wait{Min: time.Millisecond, Max: 2 * time.Millisecond, Attempts: 4}})
	held := lock(t, l, "job")
	b.Count.Reset()
	_, err := l.Lock(t.Context(), "job")
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "worker-3" || locked.Token != held.Token() || !locked.Until.IsZero() {
		t.Errorf("error %v", err)
	}
	rig.Equal(t, b.Count.Total(), 4, "requests for 4 attempts")
}

func TestS3_1_TakeFreeTakeExpiredRefuseHeld(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := lock(t, l, "job") // none exists
		_, err := l.TryLock(t.Context(), "job")
		rig.Is(t, err, repo.ErrLocked)
		rig.Is(t, held.Unlock(t.Context()))

		short := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second})
		dead := lock(t, short, "job")
		l.SetClock(time.Minute)
		taken := lock(t, l, "job") // the old one is expired
		if taken.Token() <= dead.Token() {
			t.Errorf("token %d after %d", taken.Token(), dead.Token())
		}
	})
}

func TestS3_2_ReleaseOutcomesAreDistinct(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := lock(t, l, "job")
		other := lock(t, l, "other")
		err := l.Release(t.Context(), "job", other.ID())
		rig.Is(t, err, repo.ErrLocked)
		if errors.Is(err, repo.ErrNotHeld) {
			t.Error("held by another is also reported as not held")
		}
		rig.Is(t, l.Release(t.Context(), "job", held.ID()))
		err = l.Release(t.Context(), "job", held.ID())
		rig.Is(t, err, repo.ErrNotHeld)
		if errors.Is(err, repo.ErrLocked) {
			t.Error("not held is also reported as held by another")
		}
		err = held.Unlock(t.Context()) // by handle
		if cfg.Mode == mutex.FailClosed {
			rig.Is(t, err, repo.ErrLockLost, repo.ErrNotHeld)
		}
		again := lock(t, l, "job")
		rig.Is(t, again.Unlock(t.Context()))
		rig.Is(t, again.Unlock(t.Context())) // for defer
		rig.Is(t, l.Release(t.Context(), "job", ""), repo.ErrKey)
	})
}

func TestAHandleFindsOutThatItsLockWasReleasedByID(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen})
	held := lock(t, l, "job")
	rig.Is(t, l.Release(t.Context(), "job", held.ID()))
	lock(t, l, "job")
	rig.Is(t, held.Unlock(t.Context()), repo.ErrLockLost, repo.ErrLocked)
	rig.Is(t, lock(t, l, "other").SetPayload(t.Context(), nil))
}

func TestLockAndUnlockAreTwoRequests(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		for range 2 { // a new row, and one that exists
			b.Count.Reset()
			held := lock(t, l, "job")
			rig.Is(t, held.Unlock(t.Context()))
			rig.Equal(t, b.Count.Total(), 2, "requests: %v", b.Count.Counts())
		}
	})
}

func TestPayload(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen})
	held := lock(t, l, "job")
	if held.Payload() != nil {
		t.Errorf("payload %q in a new row", held.Payload())
	}
	rig.Is(t, held.SetPayload(t.Context(), []byte("line 7")))
	rig.Is(t, held.SetPayload(t.Context(), make([]byte, 5000)), repo.ErrTooLarge)
	rig.Is(t, held.Unlock(t.Context()))
	rig.Is(t, held.SetPayload(t.Context(), []byte("late")), repo.ErrReleased)
	next := lock(t, l, "job")
	rig.Equal(t, string(next.Payload()), "line 7", "payload %q", next.Payload())
	rig.Is(t, l.Break(t.Context(), "job", next.Token()))
	rig.Is(t, next.SetPayload(t.Context(), []byte("late")), repo.ErrLockLost)
	if got := lock(t, l, "job").Payload(); string(got) != "line 7" {
		t.Errorf("payload %q after a write that was refused", got)
	}
}

func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{fault.LoseResponse, fault.CutResponse, fault.Truncate, fault.Error500After, fault.Resend, fault.DropRequest, fault.Error500, fault.Throttle} {
		t.Run(kind.String(), func(t *testing.T) {
			eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
				l := b.locker(t, cfg)
				b.Nth("UpdateItem", 0, kind) // the answer to Lock
				held := lock(t, l, "job")
				b.Faults(func(op string, n int, _ []byte) fault.Kind { return fault.None })
				op := "UpdateItem"
				if cfg.Mode == mutex.FailClosed {
					op = "DeleteItem"
				}
				b.Nth(op, 0, kind) // the answer to Unlock
				err := held.Unlock(t.Context())
				if kind == fault.Resend && cfg.Mode == mutex.FailClosed {
					// The network's own copy found the row gone. Nothing tells it
					// from a row that somebody else had removed.
					rig.Is(t, err, repo.ErrNotHeld)
				} else {
					rig.Is(t, err)
				}
				b.Faults(nil)
				rig.Is(t, lock(t, l, "job").Unlock(t.Context()))
			})
		})
	}
}

func TestDo(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Heartbeat: 100 * time.Millisecond})
	rig.Is(t, l.Do(t.Context(), "job", nil), repo.ErrConfig)
	sour := errors.New("sour")
	rig.Is(t, l.Do(t.Context(), "job", func(context.Context, *mutex.Lock) error { return sour }), sour)
	err := l.Do(t.Context(), "job", func(ctx context.Context, held *mutex.Lock) error {
		rig.Is(t, l.Break(t.Context(), "job", held.Token()))
		return rig.Ended(ctx, t)
	})
	rig.Is(t, err, repo.ErrLockLost, repo.ErrNotHeld)
	err = l.Do(t.Context(), "job", func(_ context.Context, held *mutex.Lock) error { return l.Break(t.Context(), "job", held.Token()) })
	if rig.Is(t, err, repo.ErrDone, repo.ErrLockLost); repo.VerdictOf(err) != repo.Written || repo.Retryable(err) {
		t.Errorf("what is done would be done again: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(t.Context(), "job", func(context.Context, *mutex.Lock) error { panic("boom") })
	}()
	rig.Is(t, lock(t, l, "job").Unlock(t.Context())) // a panic has freed it
}

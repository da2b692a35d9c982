package mutex_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
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
	for _, cfg := range []mutex.Config{{}, {Mode: mutex.FailOpen, Lease: time.Second, ClockSkew: 1}} {
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

func TestS2_2_FailOpenEndsWithItsLeaseAndKeepsTheRow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, ClockSkew: 1})
	dead := lock(t, l, "job")
	_, err := l.TryLock(t.Context(), "job")
	rig.Is(t, err, repo.ErrLocked)
	next := rig.Must(l.Lock(t.Context(), "job"))(t) // waits for the end of the lease
	rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
	rig.Is(t, dead.Unlock(t.Context()), repo.ErrLockLost, repo.ErrLocked)
	rig.Is(t, next.Unlock(t.Context()))
	if b.row(t, "job")["lockToken"] == nil {
		t.Error("release removed the row's token")
	}
	again := lock(t, l, "job") // free at once
	if again.Token() != next.Token()+1 {
		t.Errorf("token %d after %d", again.Token(), next.Token())
	}
}

func TestS2_2_HeartbeatKeepsTheLock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Heartbeat: 500 * time.Millisecond, ClockSkew: 1})
	held := lock(t, l, "job")
	token := held.Token()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // longer than the lease
	defer cancel()
	_, err := l.Lock(ctx, "job")
	rig.Is(t, err, repo.ErrLocked)
	if held.Context().Err() != nil || held.Token() != token {
		t.Errorf("the lock ended: %v, token %d, was %d", context.Cause(held.Context()), held.Token(), token)
	}
	rig.Is(t, held.Unlock(t.Context()))
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
	l := b.locker(t, mutex.Config{Owner: "worker-3", Wait: repo.Wait{Min: time.Millisecond, Max: 2 * time.Millisecond, Attempts: 4}})
	held := lock(t, l, "job")
	b.Count.Reset()
	_, err := l.Lock(t.Context(), "job")
	var locked *repo.LockedError
	if !errors.As(err, &locked) || locked.Owner != "worker-3" || locked.Token != held.Token() || !locked.Until.IsZero() {
		t.Errorf("error %v", err)
	}
	if n := b.Count.Total(); n != 4 {
		t.Errorf("%d requests for 4 attempts", n)
	}
}

func TestS2_4_TrustedAndUntrustedClocks(t *testing.T) {
	b := newBench(t)
	dead := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second})
	dead.SetClock(10 * time.Minute) // writes an end far in the future of others
	lock(t, dead, "job")
	trusting := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: time.Second})
	ctx, cancel := context.WithTimeout(t.Context(), 1200*time.Millisecond)
	defer cancel()
	_, err := trusting.Lock(ctx, "job")
	rig.Is(t, err, repo.ErrLocked)
	watcher := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 5 * time.Second, Clockless: true})
	watcher.SetClock(-10 * time.Minute)
	began := time.Now()
	rig.Must(watcher.Lock(t.Context(), "job"))(t)
	if took := time.Since(began); took < time.Second {
		t.Errorf("taken over after %v, the holder's lease is 1 s", took)
	}
}

func TestS2_5_AFailedHeartbeatReachesTheHolder(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, b bench, l *mutex.Locker, held *mutex.Lock)
		want  error
	}{
		"broken by an operator": {func(t *testing.T, b bench, l *mutex.Locker, held *mutex.Lock) {
			rig.Is(t, l.Break(t.Context(), "job", held.Token()))
		}, repo.ErrLockLost},
		"no answer any more": {func(_ *testing.T, b bench, _ *mutex.Locker, _ *mutex.Lock) {
			b.Always(fault.DropRequest)
		}, repo.ErrLockExpired},
		"table deleted": {func(t *testing.T, b bench, _ *mutex.Locker, _ *mutex.Lock) {
			_, err := rig.Client().DeleteTable(t.Context(), &dynamodb.DeleteTableInput{TableName: &b.Table})
			rig.Is(t, err)
		}, repo.ErrNoTable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Heartbeat: 100 * time.Millisecond})
			held := lock(t, l, "job")
			c.spoil(t, b, l, held)
			rig.Is(t, rig.Ended(held.Context(), t), c.want)
		})
	}
}

func TestS2_6_KeysOfEveryType(t *testing.T) {
	for name, c := range map[string]struct {
		key    repo.KeySchema
		lock   any
		other  any
		broken any
	}{
		"string":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, "a", "b", 7},
		"number":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: types.ScalarAttributeTypeN}}, 7, 8.5, "7"},
		"binary":              {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: types.ScalarAttributeTypeB}}, []byte{0, 1}, []byte{0}, "x"},
		"with a sort key":     {repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}, Sort: repo.KeyAttribute{Name: "part", Type: types.ScalarAttributeTypeN}}, repo.Key{Partition: "a", Sort: 1}, repo.Key{Partition: "a", Sort: 2}, "a"},
		"named like keywords": {repo.KeySchema{Partition: repo.KeyAttribute{Name: "select"}, Sort: repo.KeyAttribute{Name: "_x-y.z"}}, repo.Key{Partition: "a", Sort: "1"}, repo.Key{Partition: "a", Sort: "2"}, repo.Key{Partition: "a", Sort: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := bench{rig.New(t)}
			l := b.locker(t, mutex.Config{Key: c.key, Table: repo.TableConfig{Attributes: repo.Attributes{LockedBy: "holder", LockTime: "until"}}})
			rig.Is(t, l.EnsureTable(t.Context()))
			first := lock(t, l, c.lock)
			_, err := l.TryLock(t.Context(), c.lock)
			rig.Is(t, err, repo.ErrLocked)
			second := lock(t, l, c.other)
			_, err = l.TryLock(t.Context(), c.broken)
			rig.Is(t, err, repo.ErrKey)
			var tokens []int64
			for info, err := range l.List(t.Context()) {
				rig.Is(t, err)
				tokens = append(tokens, info.Token)
				rig.Is(t, l.Break(t.Context(), info.Key, info.Token)) // a listed key is a name
			}
			slices.Sort(tokens)
			want := []int64{first.Token(), second.Token()}
			slices.Sort(want)
			if !slices.Equal(tokens, want) {
				t.Errorf("listed tokens %v, want %v", tokens, want)
			}
		})
	}
}

func TestS2_7_EnsureTable(t *testing.T) {
	b := newBench(t)
	rig.Is(t, b.locker(t, mutex.Config{}).EnsureTable(t.Context())) // it exists
	other := b.locker(t, mutex.Config{Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}})
	rig.Is(t, other.EnsureTable(t.Context()), repo.ErrSchema)
	withSort := b.locker(t, mutex.Config{Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "name"}, Sort: repo.KeyAttribute{Name: "part"}}})
	rig.Is(t, withSort.EnsureTable(t.Context()), repo.ErrSchema)
	missing := rig.Must(mutex.New(b.Client, b.Table+"-none", mutex.Config{}))(t)
	_, err := missing.TryLock(t.Context(), "job")
	rig.Is(t, err, repo.ErrNoTable)
	ttl, err := b.Client.DescribeTimeToLive(t.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: &b.Table})
	rig.Is(t, err)
	if aws.ToString(ttl.TimeToLiveDescription.AttributeName) != "expiresAt" {
		t.Errorf("TTL is %v", ttl.TimeToLiveDescription)
	}
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

func TestS3_4_ExtendWhileHolding(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen})
	held := lock(t, l, "job")
	before := held.Until()
	rig.Is(t, held.Extend(t.Context()))
	if !held.Until().After(before) {
		t.Errorf("until %v, was %v", held.Until(), before)
	}
	rig.Is(t, l.Break(t.Context(), "job", held.Token()))
	rig.Is(t, held.Extend(t.Context()), repo.ErrLockLost)
	rig.Is(t, rig.Ended(held.Context(), t), repo.ErrLockLost)
}

func TestS3_5_ClocksMinutesApart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	short := func(ahead time.Duration) *mutex.Locker {
		l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Clockless: true, Heartbeat: 500 * time.Millisecond})
		l.SetClock(ahead)
		return l
	}
	held := lock(t, short(-3*time.Minute), "job")                  // for others it ended long ago
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // longer than the lease
	defer cancel()
	_, err := short(3*time.Minute).Lock(ctx, "job")
	rig.Is(t, err, repo.ErrLocked)
	if held.Context().Err() != nil {
		t.Errorf("the lock ended: %v", context.Cause(held.Context()))
	}
	rig.Is(t, held.Unlock(t.Context()))
}

func TestLockAndUnlockAreTwoRequests(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		for range 2 { // a new row, and one that exists
			b.Count.Reset()
			held := lock(t, l, "job")
			rig.Is(t, held.Unlock(t.Context()))
			if n := b.Count.Total(); n != 2 {
				t.Errorf("%d requests: %v", n, b.Count.Counts())
			}
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
	if string(next.Payload()) != "line 7" {
		t.Errorf("payload %q", next.Payload())
	}
	rig.Is(t, l.Break(t.Context(), "job", next.Token()))
	rig.Is(t, next.SetPayload(t.Context(), []byte("late")), repo.ErrLockLost)
	if got := lock(t, l, "job").Payload(); string(got) != "line 7" {
		t.Errorf("payload %q after a write that was refused", got)
	}
}

func TestLostAnswers(t *testing.T) {
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

func TestBadSettings(t *testing.T) {
	b := newBench(t)
	for name, cfg := range map[string]mutex.Config{
		"mode":                           {Mode: 7},
		"lease of a fail-closed lock":    {Lease: time.Minute},
		"heartbeat of a fail-closed one": {Heartbeat: time.Second},
		"lease too short":                {Mode: mutex.FailOpen, Lease: time.Millisecond},
		"less than three heartbeats":     {Mode: mutex.FailOpen, Lease: 10 * time.Second, Heartbeat: 4 * time.Second},
		"negative heartbeat":             {Mode: mutex.FailOpen, Heartbeat: -1},
		"less than three attempts":       {Mode: mutex.FailOpen, Lease: 10 * time.Second, Table: repo.TableConfig{AttemptTimeout: 4 * time.Second}},
		"owner too long":                 {Owner: string(make([]byte, 300))},
		"negative skew":                  {ClockSkew: -1},
		"wait":                           {Wait: repo.Wait{Min: time.Second, Max: time.Millisecond}},
		"key type":                       {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id", Type: "SS"}}},
		"key name taken":                 {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "lockedBy"}}},
		"sort key like partition key":    {Key: repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}, Sort: repo.KeyAttribute{Name: "id"}}},
		"payload name taken":             {Payload: "lockTime"},
		"payload is the key":             {Payload: "name"},
	} {
		if _, err := mutex.New(b.Client, b.Table, cfg); !errors.Is(err, repo.ErrConfig) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := mutex.New(nil, b.Table, mutex.Config{}); !errors.Is(err, repo.ErrConfig) {
		t.Errorf("nil client: error %v", err)
	}
}

func TestBadNames(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	for _, name := range []any{nil, "", string(make([]byte, 2049)), "\xff", 7, []byte("x"), repo.Key{Partition: "a", Sort: "b"}, struct{}{}} {
		if _, err := l.TryLock(t.Context(), name); !errors.Is(err, repo.ErrKey) {
			t.Errorf("name %.20v: error %v", name, err)
		}
	}
	longest := lock(t, l, string(make([]byte, 2047))+"x")
	rig.Is(t, longest.Unlock(t.Context()))
}

func TestDo(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{Mode: mutex.FailOpen, Heartbeat: 100 * time.Millisecond})
	sour := errors.New("sour")
	rig.Is(t, l.Do(t.Context(), "job", func(context.Context, *mutex.Lock) error { return sour }), sour)
	err := l.Do(t.Context(), "job", func(ctx context.Context, held *mutex.Lock) error {
		rig.Is(t, l.Break(t.Context(), "job", held.Token()))
		return rig.Ended(ctx, t)
	})
	rig.Is(t, err, repo.ErrLockLost, repo.ErrNotHeld)
	func() {
		defer func() { _ = recover() }()
		_ = l.Do(t.Context(), "job", func(context.Context, *mutex.Lock) error { panic("boom") })
	}()
	rig.Is(t, lock(t, l, "job").Unlock(t.Context())) // a panic has freed it
}

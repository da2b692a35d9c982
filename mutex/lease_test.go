package mutex_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

func TestS2_2_FailOpenEndsWithItsLeaseAndKeepsTheRow(t *testing.T) {
	b := newBench(t)
	var next int64 // token
	rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
		l := b.over(t, network, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, ClockSkew: -1})
		dead := lock(t, l, "job")
		_, err := l.TryLock(t.Context(), "job")
		rig.Is(t, err, repo.ErrLocked)
		second := rig.Must(l.Lock(t.Context(), "job"))(t) // waits for the end of the lease
		rig.Is(t, rig.Ended(dead.Context(), t), repo.ErrLockExpired)
		rig.Is(t, dead.Unlock(t.Context()), repo.ErrLockLost, repo.ErrLocked)
		rig.Is(t, second.Unlock(t.Context()))
		again := lock(t, l, "job") // free at once
		rig.Equal(t, again.Token(), second.Token()+1, "token after %d", second.Token())
		rig.Is(t, again.Unlock(t.Context()))
		next = again.Token() + 1
	})
	if row := b.row(t, "job"); !ddb.Equal(row["lockToken"], ddb.Integer(next)) {
		t.Errorf("the row of a free lock is %v, without the next token %d", row, next)
	}
}

func TestS2_2_HeartbeatKeepsTheLock(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
		l := b.over(t, network, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Heartbeat: 500 * time.Millisecond, ClockSkew: -1})
		held := lock(t, l, "job")
		token := held.Token()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := l.Lock(ctx, "job")
		rig.Is(t, err, repo.ErrLocked)
		if held.Context().Err() != nil || held.Token() != token {
			t.Errorf("the lock ended: %v, token %d, was %d", context.Cause(held.Context()), held.Token(), token)
		}
		rig.Is(t, held.Unlock(t.Context()))
	})
}

func TestS2_4_TrustedAndUntrustedClocks(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
		short := mutex.Config{Mode: mutex.FailOpen, Lease: time.Second, Race: true} // a queue watches, too
		dead := b.over(t, network, short)
		dead.SetClock(10 * time.Minute) // writes an end far in the future of others
		lock(t, dead, "job")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := b.over(t, network, short).Lock(ctx, "job")
		rig.Is(t, err, repo.ErrLocked)
		watcher := b.over(t, network, mutex.Config{Mode: mutex.FailOpen, Lease: 5 * time.Second, Clockless: true})
		watcher.SetClock(-10 * time.Minute)
		began := time.Now()
		held := rig.Must(watcher.Lock(t.Context(), "job"))(t)
		if took := time.Since(began); took < time.Second || took > 2*time.Second {
			t.Errorf("taken over after %v, the holder's lease is 1 s", took)
		}
		rig.Is(t, held.Unlock(t.Context()))
	})
}

func TestS2_5_AFailedHeartbeatReachesTheHolder(t *testing.T) {
	t.Parallel()
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
	b := newBench(t)
	rig.InVirtualTime(t, 4, func(t *testing.T, network fault.Doer) {
		short := func(ahead time.Duration) *mutex.Locker {
			l := b.over(t, network, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, Clockless: true, Heartbeat: 500 * time.Millisecond})
			l.SetClock(ahead)
			return l
		}
		held := lock(t, short(-3*time.Minute), "job") // for others it ended long ago
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := short(3*time.Minute).Lock(ctx, "job")
		rig.Is(t, err, repo.ErrLocked)
		if held.Context().Err() != nil {
			t.Errorf("the lock ended: %v", context.Cause(held.Context()))
		}
		rig.Is(t, held.Unlock(t.Context()))
	})
}

package lockedread_test

import (
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/repo"
)

// TestAThrottledCommitIsNotGivenUp: while the lease lasts a commit outlives more
// refusals of a busy table than the client's policy has attempts, because the
// others wait for the lock in any case.
func TestAThrottledCommitIsNotGivenUp(t *testing.T) {
	b := newBench(t)
	var throttle atomic.Int32
	client := rig.Client(func(o *dynamodb.Options) {
		o.Retryer = retry.NewStandard()
		o.HTTPClient = fault.New(o.HTTPClient, fault.Config{Script: func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" && throttle.Add(-1) >= 0 {
				return fault.Throttle
			}
			return fault.None
		}})
	})
	table := rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t)
	l := rig.Must(lockedread.New(table, lockedread.Config{}))(t)
	h := rig.Must(l.Acquire(t.Context(), key))(t)
	throttle.Store(int32(2 * retry.DefaultMaxAttempts))
	item := h.Item()
	item.Count++
	rig.Must(h.Commit(t.Context(), item))(t)
	if left := throttle.Load(); left >= 0 {
		t.Errorf("%d refusals are left", left+1)
	}
	wantCount(t, b, 11)
	wantClean(t, b)
}

// TestAThrottledAcquireDoesNotSleepForSeconds: others of the process wait behind it, so
// the sleeps of a client's policy are filled with further tries.
func TestAThrottledAcquireDoesNotSleepForSeconds(t *testing.T) {
	b := newBench(t)
	var throttle atomic.Int32
	client := rig.Client(rig.WithHoursBetweenAttempts, rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
		if throttle.Add(-1) >= 0 {
			return fault.Throttle
		}
		return fault.None
	}))
	table := rig.Must(repo.NewTable[stock](client, b.Table, repo.TableConfig{}))(t)
	for name, fair := range map[string]bool{"polling": false, "fair": true} {
		l := rig.Must(lockedread.New(table, lockedread.Config{Fair: fair}))(t)
		throttle.Store(int32(2 * retry.DefaultMaxAttempts))
		h := rig.Must(l.Acquire(t.Context(), key))(t)
		if left := throttle.Load(); left >= 0 {
			t.Errorf("%s: %d refusals are left", name, left+1)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wantClean(t, b)
}

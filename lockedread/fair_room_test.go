package lockedread_test

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/protocol"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
)

// Items that have hardly any room for a queue.

// putWithRoom puts an item that has room for so many bytes more.
func (b bench) putWithRoom(t *testing.T, room int, item map[string]types.AttributeValue) {
	t.Helper()
	item["id"], item["count"] = &types.AttributeValueMemberS{Value: "apple"}, &types.AttributeValueMemberN{Value: "10"}
	item["note"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", 409_600-room-len("note")-protocol.Size(item))}
	rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: item}))(t)
}

// putDeadWithoutRoom puts one whose holder and queue are dead, with room for a takeover,
// but not for an entry: engines count numbers a little larger.
func (b bench) putDeadWithoutRoom(t *testing.T) {
	t.Helper()
	item := lockAttributes(time.Now(), 1)
	item["lockQueue"] = &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: []byte("BBBB")}, &types.AttributeValueMemberB{Value: []byte("CCCC")}}}
	b.putWithRoom(t, 100, item)
}

// lockAttributes are those of a lock that somebody has, for a lease of so many seconds.
func lockAttributes(until time.Time, lease int64) map[string]types.AttributeValue {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	now := time.Now().UnixMicro()
	return map[string]types.AttributeValue{
		"lockedBy": &types.AttributeValueMemberS{Value: "somebody on some host/123#AAAAAAAAAAAAAAAAAAAAAA"}, "lockTime": number(until.Unix()), "lockLease": number(lease),
		"lockHeld": number(now), "lockToken": number(now + 3), "lockStolen": number(now - 1)}
}

// Where the item has no room for one more in its queue, the next one waits for
// room instead of failing. (A change that makes such an item larger may fail.)
func TestFairQueueThatFillsTheItem(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.putWithRoom(t, 300, map[string]types.AttributeValue{}) // the lock and its tokens, and a few entries
	cfg := lockedread.Config{Fair: true, Owner: "x"}
	held := acquire(t, b.locker(t, cfg))
	const waiters = 10
	var refused atomic.Int64
	var done sync.WaitGroup
	for range waiters {
		l := b.lockerOf(t, &rig.Intercept{Client: rig.Client(), Update: func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			if err != nil && strings.Contains(err.Error(), "Item size") {
				refused.Add(1)
			}
			return out, err
		}}, cfg)
		done.Go(func() {
			next, err := l.Acquire(t.Context(), key)
			if err == nil {
				err = next.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	rig.Await(t, "an entry finds no room beside others", func() bool { return refused.Load() > 0 && b.entries(t) > 1 })
	rig.Is(t, held.Release(t.Context()))
	done.Wait()
	wantClean(t, b)
}

// A single look without an answer does not end the waiting for room, however long the
// request before it took.
func TestALookWithoutAnAnswerWhileThereIsNoRoom(t *testing.T) {
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		here := b.within(network)
		here.putDeadWithoutRoom(t)
		cfg := lockedread.Config{Fair: true, Lease: time.Second, Owner: "x"}
		slow := &rig.Intercept{Client: here.Client,
			Update: func(n int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
				if n == 1 {
					time.Sleep(cfg.Lease + cfg.Lease/10)
				}
				return send()
			},
			Get: func(n int) {
				if n == 1 {
					time.Sleep(cfg.Lease / 5) // longer than a look waits at first
				}
			}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		held := rig.Must(here.lockerOf(t, slow, cfg).Acquire(ctx, key))(t)
		rig.Is(t, held.Release(t.Context()))
	})
}

// An enqueue that has an answer is news of the item: a look that is lost after it does not
// count together with one that was lost while there was no room, however long ago.
func TestALookWithoutAnAnswerAfterThereWasNoRoom(t *testing.T) {
	b := newBench(t)
	inVirtualTime(t, func(t *testing.T, network fault.Doer) {
		here := b.within(network)
		held := func() map[string]types.AttributeValue { // for so long that looks are sent
			return lockAttributes(time.Now().Add(20*time.Second), 30)
		}
		here.putWithRoom(t, 100, held())
		var reads, updates atomic.Int64
		lost := func(op, _ string) (before, after bool) {
			if op == "GetItem" {
				return reads.Add(1) <= 2, false // one while there is no room, one behind the enqueue
			}
			n := updates.Add(1)
			if n == 2 {
				here.put(t, held())
			}
			return n >= 2 && n <= 6, false // for longer than a lease
		}
		l := b.over(t, &rig.Mortal{Next: network, Lost: lost}, lockedread.Config{Fair: true, Lease: 10 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		next := rig.Must(l.Acquire(ctx, key))(t)
		rig.Is(t, next.Release(t.Context()))
		if reads.Load() < 3 || updates.Load() < 8 {
			t.Errorf("%d reads, %d updates: the test shows nothing", reads.Load(), updates.Load())
		}
	})
}

// Where holder and queue are dead, nobody makes room: the next one takes the
// lock alone.
func TestFairQueueOfTheDeadThatFillsTheItem(t *testing.T) {
	b := newBench(t)
	for name, clockless := range map[string]bool{"by the clock": false, "clockless": true} {
		t.Run(name, func(t *testing.T) {
			inVirtualTime(t, func(t *testing.T, network fault.Doer) {
				here := b.within(network)
				here.putDeadWithoutRoom(t)
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				held := rig.Must(here.locker(t, lockedread.Config{Fair: true, Lease: time.Second, Owner: "x", Clockless: clockless}).Acquire(ctx, key))(t)
				rig.Is(t, held.Release(t.Context()))
			})
		})
	}
}

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
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	now := time.Now()
	b.putWithRoom(t, 100, map[string]types.AttributeValue{
		"lockedBy": text("somebody on some host/123#AAAAAAAAAAAAAAAAAAAAAA"), "lockTime": number(now.Unix()), "lockLease": number(1),
		"lockHeld": number(now.UnixMicro()), "lockToken": number(now.UnixMicro() + 3), "lockStolen": number(now.UnixMicro() - 1),
		"lockQueue": &types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberB{Value: []byte("BBBB")}, &types.AttributeValueMemberB{Value: []byte("CCCC")}}}})
}

// Where the item has no room for one more in its queue, the next one waits for
// room instead of failing. (A change that makes such an item larger may fail.)
func TestFairQueueThatFillsTheItem(t *testing.T) {
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
	b.putDeadWithoutRoom(t)
	cfg := lockedread.Config{Fair: true, Lease: time.Second, Owner: "x"}
	slow := &rig.Intercept{Client: rig.Client(),
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
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	held := rig.Must(b.lockerOf(t, slow, cfg).Acquire(ctx, key))(t)
	rig.Is(t, held.Release(t.Context()))
}

// Where holder and queue are dead, nobody makes room: the next one takes the
// lock alone.
func TestFairQueueOfTheDeadThatFillsTheItem(t *testing.T) {
	for name, clockless := range map[string]bool{"by the clock": false, "clockless": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.putDeadWithoutRoom(t)
			ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
			defer cancel()
			held, err := b.locker(t, lockedread.Config{Fair: true, Lease: time.Second, Owner: "x", Clockless: clockless}).Acquire(ctx, key)
			rig.Is(t, err)
			if err == nil {
				rig.Is(t, held.Release(t.Context()))
			}
		})
	}
}

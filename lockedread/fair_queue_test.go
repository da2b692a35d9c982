package lockedread_test

import (
	"context"
	"errors"
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
	"github.com/dynahold/dynahold/internal/suite"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// What went wrong in the queue on an item (Config.Fair). Each test is a bug that
// was found once.

// looking lets a test act when an item has been read.
type looking struct {
	*rig.Intercept
	read func(item map[string]types.AttributeValue)
}

func (l looking) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	out, err := l.Client.GetItem(ctx, in, o...)
	if err == nil {
		l.read(out.Item)
	}
	return out, err
}

// handedOver reports whether an item is held by one to whom it was handed over.
func handedOver(item map[string]types.AttributeValue) bool {
	by, ok := item["lockedBy"].(*types.AttributeValueMemberS)
	return ok && strings.HasPrefix(by.Value, "next#")
}

// inQueue waits until somebody waits in the queue on the item, whose holder has
// an entry of its own.
func inQueue(t *testing.T, w *suite.Fixture) {
	t.Helper()
	rig.Await(t, "somebody stands in the queue", func() bool { return entries(w.Raw(t, suite.Key)) > 1 })
}

// Who learned late that the lock was handed over, or taken over, was told that
// it had expired, though nobody else wanted the item.
func TestALockThatIsHandedOverAndLearnedOfLate(t *testing.T) {
	t.Run("a slow look", func(t *testing.T) {
		w, h := suite.NewWith(t, suite.Key)
		cfg := lockedread.Config{Fair: true} // a second of grace
		held := rig.Must(w.Locker(t, rig.Client(), cfg).Acquire(t.Context(), suite.Key))(t)
		second := w.Locker(t, looking{h, func(item map[string]types.AttributeValue) {
			if handedOver(item) {
				time.Sleep(1200 * time.Millisecond)
			}
		}}, cfg)
		told := make(chan error)
		go func() {
			_, err := second.Update(t.Context(), suite.Key, suite.AddOne)
			told <- err
		}()
		inQueue(t, w)
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		rig.Is(t, <-told)
	})
	t.Run("a takeover without an answer", func(t *testing.T) {
		w, h := suite.NewWith(t, suite.Key)
		cfg := lockedread.Config{Fair: true, Lease: time.Second, ClockSkew: -1}
		rig.Must(w.Locker(t, rig.Client(), cfg).Acquire(t.Context(), suite.Key))(t) // and dies
		var lost atomic.Bool
		h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			if err == nil && in.ReturnValues == types.ReturnValueAllNew && strings.Contains(*in.ConditionExpression, "#n") && lost.CompareAndSwap(false, true) {
				return nil, rig.ErrNoAnswer
			}
			return out, err
		}
		_, err := w.Locker(t, h, cfg).Update(t.Context(), suite.Key, suite.AddOne)
		rig.Is(t, err)
		if !lost.Load() {
			t.Error("no takeover was seen")
		}
	})
}

// A caller that left while its hold was claimed was told "unknown" of a change
// that had not even run.
func TestAChangeThatNeverRanIsNotUnknown(t *testing.T) {
	w, h := suite.NewWith(t, suite.Key)
	cfg := lockedread.Config{Fair: true}
	held := rig.Must(w.Locker(t, rig.Client(), cfg).Acquire(t.Context(), suite.Key))(t)
	ctx, leave := context.WithCancel(t.Context())
	claims := 0
	h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		out, err := send()
		if strings.HasPrefix(*in.UpdateExpression, "SET #lockTime = :until, #lockLease = :lease REMOVE") {
			claims++
			leave()
			return nil, rig.ErrNoAnswer
		}
		return out, err
	}
	second := w.Locker(t, looking{h, func(item map[string]types.AttributeValue) {
		if handedOver(item) {
			time.Sleep(900 * time.Millisecond) // most of the grace
		}
	}}, cfg)
	told := make(chan error)
	ran := false
	go func() {
		_, err := second.Update(ctx, suite.Key, func(context.Context, *suite.Account) error { ran = true; return nil })
		told <- err
	}()
	inQueue(t, w)
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := <-told
	rig.Is(t, err, context.Canceled)
	if ran || claims == 0 || errors.Is(err, repo.ErrOutcomeUnknown) {
		t.Errorf("the change has run: %v, %d claims; told %v", ran, claims, err)
	}
}

// Where the item has no room for one more in its queue, the next one waits for
// room instead of failing. (A change that makes such an item larger may fail.)
func TestAQueueThatFillsTheItem(t *testing.T) {
	w := suite.New(t)
	versions := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
	rig.Must(versions.Create(t.Context(), suite.Account{ID: "p", Seq: 1, At: 1, Note: strings.Repeat("x", 408_576-60)}))(t)
	cfg := lockedread.Config{Fair: true}
	held := rig.Must(w.Locker(t, rig.Client(), cfg).Acquire(t.Context(), suite.Key))(t)
	const waiters = 42
	var refused atomic.Int64
	var done sync.WaitGroup
	for range waiters {
		h := &rig.Intercept{Client: rig.Client()}
		h.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			out, err := send()
			if err != nil && strings.Contains(err.Error(), "Item size") {
				refused.Add(1)
			}
			return out, err
		}
		l := w.Locker(t, h, cfg)
		done.Go(func() {
			next, err := l.Acquire(t.Context(), suite.Key)
			if err == nil {
				err = next.Release(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	rig.Await(t, "a draw finds no room", func() bool { return refused.Load() > 0 })
	rig.Is(t, held.Release(t.Context()))
	done.Wait()
	if n := entries(w.Raw(t, suite.Key)); n > 0 {
		t.Errorf("%d entries are left behind", n)
	}
}

// entries counts those who wait in the queue on an item.
func entries(item map[string]types.AttributeValue) (n int) {
	for name := range item {
		if strings.HasPrefix(name, "w#") {
			n++
		}
	}
	return n
}

// Where an item has no room for one more in its queue, and holder and queue are
// dead, nobody makes room: the next one takes the lock alone.
func TestAQueueOfTheDeadThatFillsTheItem(t *testing.T) {
	w := suite.New(t)
	key := rig.Must(w.Items(t, w.Client).EncodeKey(suite.Key))(t)
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	now := time.Now()
	item := map[string]types.AttributeValue{"id": key["id"], "seq": key["seq"], "version": number(1), "at": number(1),
		"lockedBy": text("somebody on some host/123#AAAAAAAAAAAAAAAAAAAAAA"), "lockTime": number(now.Unix()), "lockLease": number(1),
		"lockHeld": number(now.UnixMicro()), "lockToken": number(now.UnixMicro() + 3), "lockStolen": number(now.UnixMicro() - 1),
		"w#BBBBBBBBBBB": number(now.UnixMicro() + 1), "w#CCCCCCCCCCC": number(now.UnixMicro() + 2)}
	// Room for a takeover, but not for an entry: engines count numbers a little larger.
	item["note"] = text(strings.Repeat("x", 409_600-100-len("note")-protocol.Size(item)))
	if _, err := w.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &w.Table, Item: item}); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []lockedread.Config{{Fair: true, Lease: time.Second, Owner: "x"}, {Fair: true, Lease: time.Second, Owner: "x", Clockless: true}} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		held, err := w.Locker(t, rig.Client(), cfg).Acquire(ctx, suite.Key)
		cancel()
		rig.Is(t, err)
		if err == nil {
			rig.Is(t, held.Release(t.Context()))
		}
	}
}

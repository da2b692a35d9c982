package mutex_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// Fair on rows that others lock, change or delete too.

// A row with an attribute of somebody else's stays, and goes from hand to hand, with what
// the holder has left in it.
func TestFairRowWithAnAttributeOfItsOwn(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		name, kept := &types.AttributeValueMemberS{Value: "printer"}, &types.AttributeValueMemberS{Value: "on the second floor"}
		rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: row{"name": name, "where": kept}}))(t)
		held := rig.Must(b.locker(t, cfg).Lock(t.Context(), "printer"))(t)
		rig.Is(t, held.SetPayload(t.Context(), []byte("page 7")))
		got := make(chan *mutex.Lock, 1)
		go func() { got <- rig.Must(b.locker(t, cfg).Lock(soon(t), "printer"))(t) }()
		b.queued(t, "printer", 2)
		rig.Is(t, held.Unlock(t.Context()))
		next := <-got
		rig.Equal(t, string(next.Payload()), "page 7", "payload")
		rig.Is(t, next.Unlock(t.Context()))
		if r := b.row(t, "printer"); r["where"] == nil || r["lockedBy"] != nil || len(b.entries(t, "printer")) > 0 || next.Token() != held.Token()+1 {
			t.Errorf("tokens %d and %d; left: %v", held.Token(), next.Token(), r)
		}
	})
}

// Who is fair and who is not exclude each other, and each comes to its turn; a locker
// that is not fair may delete the row with the queue on it.
func TestFairAmongOthers(t *testing.T) {
	eachFair(t, func(t *testing.T, b bench, cfg mutex.Config) {
		ctx, inside := soon(t), 0 // guarded by the lock under test
		last := int64(0)
		var all sync.WaitGroup
		for i := range 6 {
			cfg := cfg
			cfg.Fair = i%2 == 0
			cfg.Wait = quick
			l := b.locker(t, cfg)
			all.Go(func() {
				for range rig.Share(3, 20) {
					rig.Is(t, l.Do(ctx, "printer", func(_ context.Context, lock *mutex.Lock) error {
						inside++
						if inside != 1 || lock.Token() <= last && cfg.Mode == mutex.FailOpen {
							t.Errorf("%d hold it; token %d after %d", inside, lock.Token(), last)
						}
						last = lock.Token()
						inside--
						return nil
					}))
				}
			})
		}
		all.Wait()
		wantEnded(t, b, cfg, "printer")
	})
}

// Whoever waits in a queue whose row is deleted under it, as by a locker that is not fair,
// enters anew, and gets a token above all that it has seen.
func TestFairRowDeletedUnderItsQueue(t *testing.T) {
	b := newBench(t)
	cfg := mutex.Config{}
	held := rig.Must(b.locker(t, cfg).Lock(t.Context(), "printer"))(t)
	cfg.Fair = true
	got := make(chan *mutex.Lock, 2)
	for i := range 2 {
		go func() { got <- rig.Must(b.locker(t, cfg).Lock(soon(t), "printer"))(t) }()
		b.queued(t, "printer", i+1)
	}
	rig.Is(t, held.Unlock(t.Context()))
	for range 2 {
		next := <-got
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		rig.Is(t, next.Unlock(t.Context()))
	}
	wantEnded(t, b, cfg, "printer")
}

// No queue forms behind a lock that a fail-open one must not put a lease on: it waits as
// without Fair, and nobody takes the lock over.
func TestFairOpenBehindAClosedLock(t *testing.T) {
	b := newBench(t)
	closed, open := mutex.Config{Fair: true}, mutex.Config{Mode: mutex.FailOpen, Fair: true, Wait: quick}
	held := rig.Must(b.locker(t, closed).Lock(t.Context(), "printer"))(t)
	got := make(chan *mutex.Lock, 1)
	go func() { got <- rig.Must(b.locker(t, open).Lock(soon(t), "printer"))(t) }()
	b.Count.Reset()
	rig.Await(t, "it has tried again", func() bool { return b.Count.Count("UpdateItem") > 3 })
	if r := b.row(t, "printer"); r["lockLease"] != nil || len(b.entries(t, "printer")) != 1 {
		t.Errorf("%v", r)
	}
	rig.Is(t, held.Unlock(t.Context()))
	next := <-got
	// A fail-closed one stands behind both.
	go func() { got <- rig.Must(b.locker(t, closed).Lock(soon(t), "printer"))(t) }()
	b.queued(t, "printer", 1)
	rig.Is(t, next.Unlock(t.Context()))
	last := <-got
	if info := rig.Must(b.locker(t, closed).Inspect(t.Context(), "printer"))(t); info.Mode != mutex.FailClosed || info.Token != next.Token()+1 {
		t.Errorf("%+v after %d", info, next.Token())
	}
	rig.Is(t, last.Unlock(t.Context()))
	wantEnded(t, b, closed, "printer")
}

// An enqueue whose first answer was lost arrives once more after its row was deleted, and
// makes it anew with the token of when it was sent: the lock is not without a holder, and
// its holder's token is above that of all whom it has seen.
func TestFairLateCopyOfAnEnqueue(t *testing.T) {
	b := newBench(t)
	holder := b.locker(t, mutex.Config{Race: true}) // it leaves no place in the queue
	holder.SetClock(time.Hour)                      // its token is that far ahead
	held := rig.Must(holder.Lock(t.Context(), "printer"))(t)
	var sent *dynamodb.UpdateItemInput
	var again sync.Once
	peer := bench{b.Peer()}
	client := &rig.Intercept{
		Client: peer.Client,
		Update: func(n int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			if n == 1 {
				sent = in
			}
			return send()
		},
		Read: func(item map[string]types.AttributeValue) {
			if len(item) == 0 {
				again.Do(func() { _ = rig.Must(rig.Client().UpdateItem(t.Context(), sent))(t) })
			}
		},
	}
	peer.Nth("UpdateItem", 0, fault.DropRequest)
	l := rig.Must(mutex.New(client, b.Table, mutex.Config{Fair: true}))(t)
	got := make(chan *mutex.Lock, 1)
	go func() { got <- rig.Must(l.Lock(soon(t), "printer"))(t) }()
	b.queued(t, "printer", 1)
	rig.Is(t, held.Unlock(t.Context()))
	lock := <-got
	if lock.Token() <= held.Token() {
		t.Errorf("token %d after %d", lock.Token(), held.Token())
	}
	rig.Is(t, lock.Unlock(t.Context()))
	wantEnded(t, b, mutex.Config{}, "printer")
}

// A clockless locker takes a hold by hand over, which names no lease, only after it has
// watched it for the usual one: a fail-closed one, which has none of its own, did so at once.
func TestClocklessBehindALockByHand(t *testing.T) {
	for _, fair := range []bool{false, true} {
		b := newBench(t)
		rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: row{
			"name": &types.AttributeValueMemberS{Value: "printer"}, "lockedBy": &types.AttributeValueMemberS{Value: "joe"},
			"lockTime": &types.AttributeValueMemberN{Value: fmt.Sprint(time.Now().Add(time.Hour).Unix())}}}))(t)
		_, err := b.locker(t, mutex.Config{Clockless: true, Fair: fair, Wait: repo.Wait{Min: time.Millisecond, Max: time.Millisecond, Attempts: 5}}).Lock(t.Context(), "printer")
		rig.Is(t, err, repo.ErrLocked)
	}
}

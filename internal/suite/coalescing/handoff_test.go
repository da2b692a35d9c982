package coalescing_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/local"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// An answer that is lost in the middle of a chain of callers: whoever comes
// next finds the lock that was passed on to it.
func TestALostHandOnIsFound(t *testing.T) {
	for _, kind := range []fault.Kind{fault.LoseResponse, fault.Error500After, fault.DropRequest, fault.Resend} {
		t.Run(kind.String(), func(t *testing.T) {
			w := fixture.New(t)
			ctx := t.Context()
			var n atomic.Int64
			client := rig.Client(rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
				if op == "UpdateItem" && n.Add(1)%3 == 0 {
					return kind
				}
				return fault.None
			}))
			r := rig.Must(pessimistic.New(w.Items(t, client), pessimistic.Config{}))(t)
			rig.Must(r.Create(ctx, fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
			var done sync.WaitGroup
			for range 8 {
				done.Go(func() {
					for range 5 {
						rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
					}
				})
			}
			done.Wait()
			if got := rig.Must(r.Get(ctx, fixture.HotKey))(t); got.Balance != 40 {
				t.Errorf("balance %d, want 40", got.Balance)
			}
			if lock := rig.Must(w.Items(t, w.Client).Inspect(ctx, fixture.HotKey))(t); lock.Held {
				t.Errorf("the item is still locked: %+v", lock)
			}
		})
	}
}

// A change that takes its time delays the others, and no more than that.
func TestASlowChangeIsOvertaken(t *testing.T) {
	defer func(patience time.Duration) { local.Patience = patience }(local.Patience)
	local.Patience = 250 * time.Millisecond
	w := fixture.New(t)
	ctx := t.Context()
	r := rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t)
	rig.Must(r.Create(ctx, fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
	c := fixture.CallersBehind(func(c *fixture.Callers) {
		rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance += 10; c.First(); return nil }))(t)
	})
	got := rig.Must(r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
	rig.Equal(t, got.Balance, 1, "balance : the slow change was waited for")
	close(c.Open)
	c.Done.Wait()
	if got := rig.Must(r.Get(ctx, fixture.HotKey))(t); got.Balance != 11 {
		t.Errorf("balance %d, want 11", got.Balance)
	}
}

// Of two goroutines that ended one hold, the second handed on nothing before
// the first handed on the lock, which was then held, and renewed, by nobody.
func TestAHoldThatIsEndedTwice(t *testing.T) {
	end := map[string]func(context.Context, *lockedread.Held[fixture.Account]){
		"release": func(ctx context.Context, h *lockedread.Held[fixture.Account]) { _ = h.Release(ctx) },
		"commit":  func(ctx context.Context, h *lockedread.Held[fixture.Account]) { _, _ = h.Commit(ctx, h.Item()) },
	}
	for name, second := range end {
		t.Run(name, func(t *testing.T) {
			w := fixture.New(t)
			rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
			l := w.Locker(t, w.Client, lockedread.Config{Lease: 5 * time.Second, Renew: true, ClockSkew: -1})
			for round := range rig.Share(60, 300) {
				held := rig.Must(l.Acquire(t.Context(), fixture.Key))(t)
				var all sync.WaitGroup
				all.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
					defer cancel()
					next, err := l.Acquire(ctx, fixture.Key)
					if err != nil {
						t.Errorf("round %d: the lock is gone: %v", round, err)
						return
					}
					_ = next.Release(ctx)
				})
				fixture.AwaitCallers(t, 1)
				all.Go(func() { end["commit"](t.Context(), held) })
				all.Go(func() { second(t.Context(), held) })
				all.Wait()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// The stub of a new item that was passed on within a process stayed behind when
// nobody made the item.
func TestAStubThatIsHandedOnGoesToo(t *testing.T) {
	w := fixture.New(t)
	first := w.Locker(t, rig.Client(), lockedread.Config{Fair: true})
	other := w.Locker(t, rig.Client(), lockedread.Config{Fair: true})
	held := rig.Must(first.AcquireOrCreate(t.Context(), fixture.Key))(t)
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { defer close(gone); _, _ = other.AcquireOrCreate(ctx, fixture.Key) }()
	rig.Await(t, "the other waits in the queue", func() bool {
		queue, _ := w.Raw(t, fixture.Key)["lockQueue"].(*types.AttributeValueMemberL)
		return queue != nil && len(queue.Value) > 0
	})
	next := make(chan *lockedread.Held[fixture.Account])
	go func() { next <- rig.Must(first.AcquireOrCreate(t.Context(), fixture.Key))(t) }()
	fixture.AwaitCallers(t, 1)
	if err := held.Extend(t.Context()); err != nil { // sees who waits in the queue
		t.Fatal(err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := <-next
	leave()
	<-gone
	if err := last.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if raw := w.Raw(t, fixture.Key); raw != nil {
		t.Errorf("left behind: %v", raw)
	}
}

// The lock of a deleted item, handed on by an Upsert that failed, let an Update
// bring the item back.
func TestUpdateOfADeletedItemThatIsHandedOn(t *testing.T) {
	for _, cfg := range []pessimistic.Config{{}, {Combine: true}, {Fair: true}} {
		w := fixture.New(t)
		ctx := t.Context()
		buries := rig.Must(nolock.New(w.Items(t, w.Client), nolock.Config{}))(t)
		rig.Must(buries.Create(ctx, fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
		if err := buries.DeleteAt(ctx, fixture.HotKey, int64(2)); err != nil {
			t.Fatal(err)
		}
		r := rig.Must(pessimistic.New(w.Items(t, w.Client), cfg))(t)
		mine := errors.New("no")
		c := fixture.CallersBehind(func(c *fixture.Callers) {
			_, err := r.Upsert(ctx, fixture.HotKey, func(context.Context, *fixture.Account) error { c.First(); return mine })
			rig.Is(t, err, mine)
		})
		c.Done.Go(func() {
			_, err := r.Update(ctx, fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.At, a.Balance = 3, 7; return nil })
			rig.Is(t, err, repo.ErrNotFound)
		})
		c.Gathered(t, 1)
		c.Done.Wait()
	}
}

// Who had committed waited, for a lease if need be, until the lock that was
// passed on, and that nobody wanted any more, was given back.
func TestACommitDoesNotWaitForWhatIsClearedAway(t *testing.T) {
	w := fixture.New(t)
	rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "hot", Seq: 1, At: 1}))(t)
	var down atomic.Bool
	var inj *fault.Injector
	client := rig.Client(func(o *dynamodb.Options) {
		inj = fault.New(o.HTTPClient, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind {
			switch {
			case n == 1: // the commit that passes the lock on
				return fault.HoldResponse
			case down.Load():
				return fault.DropRequest
			}
			return fault.None
		}})
		o.HTTPClient = inj
	})
	l := w.Locker(t, client, lockedread.Config{Lease: time.Hour})
	committed := make(chan struct{})
	c := fixture.CallersBehind(func(c *fixture.Callers) {
		defer close(committed)
		got := rig.Must(l.Update(t.Context(), fixture.HotKey, func(_ context.Context, a *fixture.Account) error { a.Balance++; c.First(); return nil }))(t)
		rig.Equal(t, got.Balance, 1, "committed %+v", got)
	})
	waiting, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, err := l.Update(waiting, fixture.HotKey, func(context.Context, *fixture.Account) error { return nil })
		rig.Is(t, err, context.Canceled)
	}()
	c.Gathered(t, 1)
	commit := <-inj.Held()
	leave()
	<-gone
	down.Store(true)
	defer down.Store(false)
	commit.Release()
	select {
	case <-committed:
	case <-time.After(rig.Patience):
		t.Error("Update waits until the lock can be given back")
	}
}

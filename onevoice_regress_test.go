package dynahold_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// What was wrong once with changes that share a voice.

// box keeps the very values that it is decoded from.
type box struct{ AV types.AttributeValue }

func (b *box) UnmarshalDynamoDBAttributeValue(av types.AttributeValue) error { b.AV = av; return nil }
func (b box) MarshalDynamoDBAttributeValue() (types.AttributeValue, error)   { return b.AV, nil }

type boxed struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	Box     box    `dynamodbav:"box"`
	Copied  string `dynamodbav:"copied"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

func (b *boxed) text() string {
	return b.Box.AV.(*types.AttributeValueMemberL).Value[0].(*types.AttributeValueMemberS).Value
}

func (b *boxed) spoil() {
	b.Box.AV.(*types.AttributeValueMemberL).Value[0] = &types.AttributeValueMemberS{Value: "never written"}
}

func TestWhatIsKeptIsNotSharedWithUsers(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	table := rig.Must(repo.NewTable[boxed](w.Client, w.Table, repo.TableConfig{}))(t)
	r := rig.Must(optimistic.New(table, optimistic.Config{Warm: 10}))(t)
	rig.Must(r.Create(ctx, boxed{ID: "hot", Seq: 1, Box: box{&types.AttributeValueMemberL{Value: []types.AttributeValue{&types.AttributeValueMemberS{Value: "true"}}}}}))(t)
	for i := range 3 { // warm from here
		rig.Must(r.Update(ctx, hotKey, func(_ context.Context, b *boxed) error { b.Copied = fmt.Sprint(i); return nil }))(t)
	}
	mine := errors.New("refused")
	_, err := r.Update(ctx, hotKey, func(_ context.Context, b *boxed) error { b.spoil(); return mine })
	rig.Is(t, err, mine)
	look := func(_ context.Context, b *boxed) error { b.Copied += b.text(); return nil }
	for range 3 {
		got := rig.Must(r.Update(ctx, hotKey, look))(t)
		if got.text() != "true" {
			t.Errorf("the item shows %q", got.text())
		}
		got.spoil() // what a caller does to what it was given
	}
	if got := rig.Must(r.Get(ctx, hotKey))(t); got.text() != "true" || got.Copied != "2truetruetrue" {
		t.Errorf("stored %q, seen by changes: %q", got.text(), got.Copied)
	}
}

// Changes that cancel each other out were acknowledged with versions of their
// own: the version moves even where the item is as it was.
func TestChangesThatCancelOut(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			ctx := t.Context()
			c := crowdOn(t, r, Account{})
			var highest atomic.Int64
			for i := range 4 {
				by := int64(i%2*2 - 1)
				c.done.Go(func() {
					got := rig.Must(r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.Balance += by; return nil }))(t)
					for old := highest.Load(); got.Version > old && !highest.CompareAndSwap(old, got.Version); old = highest.Load() {
					}
				})
			}
			c.standing(t, 4)
			c.done.Wait()
			if got := rig.Must(r.Get(ctx, hotKey))(t); got.Balance != 0 || got.Version != 5 || highest.Load() != 5 {
				t.Errorf("stored %+v, the highest version told is %d: want 5", got, highest.Load())
			}
		})
	}
}

// An upsert whose changes all fail made the item all the same.
func TestFailedUpsertsMakeNothing(t *testing.T) {
	for _, s := range combining() {
		t.Run(s.name, func(t *testing.T) {
			w := newWorld(t)
			r := s.open(t, w, w.Client)
			ctx := t.Context()
			mine := errors.New("no")
			func() {
				defer func() { _ = recover() }()
				_, _ = r.Upsert(ctx, hotKey, func(context.Context, *Account) error { panic("boom") })
			}()
			for exits := range 3 { // which of three callers ends its goroutine
				upsert := func(c *crowd, i int) {
					_, err := r.Upsert(ctx, hotKey, func(_ context.Context, a *Account) error {
						c.first()
						if a.Balance = 1; i == exits {
							runtime.Goexit()
						}
						return mine
					})
					rig.Is(t, err, mine)
				}
				c := crowdBehind(func(c *crowd) { upsert(c, 0) })
				for i := range 2 {
					c.done.Go(func() { upsert(c, i+1) })
				}
				c.standing(t, 2)
				c.done.Wait()
			}
			if _, err := r.Get(ctx, hotKey); !errors.Is(err, repo.ErrNotFound) {
				t.Errorf("error %v, want ErrNotFound: nobody made the item", err)
			}
		})
	}
}

// A change that calls its own repository for the same item is told so instead
// of waiting for itself, or of running again and again.
func TestNestedChanges(t *testing.T) {
	eachStrategy(t, func(t *testing.T, w *world, s strategy) {
		r := s.open(t, w, w.Client)
		rig.Must(r.Create(t.Context(), Account{ID: "hot", Seq: 1, At: 1}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		more := func(_ context.Context, a *Account) error { a.Balance += 10; return nil }
		runs := 0
		for _, nested := range []func(context.Context, repo.Key, func(context.Context, *Account) error) (Account, error){r.Update, r.Upsert} {
			_, err := r.Update(ctx, hotKey, func(ctx context.Context, a *Account) error {
				runs++
				a.Balance++
				_, err := nested(ctx, hotKey, more)
				return err
			})
			if !errors.Is(err, repo.ErrLocked) || ctx.Err() != nil {
				t.Errorf("error %v, want ErrLocked at once", err)
			}
		}
		if got := rig.Must(r.Get(ctx, hotKey))(t); runs != 2 || got.Balance != 0 {
			t.Errorf("%d runs of two changes, stored %+v", runs, got)
		}
		// What outlives the change is not inside it any more.
		var kept context.Context
		rig.Must(r.Update(ctx, hotKey, func(ctx context.Context, a *Account) error {
			kept = context.WithoutCancel(ctx)
			a.Balance++
			return nil
		}))(t)
		if got := rig.Must(r.Update(kept, hotKey, more))(t); got.Balance != 11 {
			t.Errorf("after the change: %+v", got)
		}
	})
}

// The lock of a deleted item, handed on by an Upsert that failed, let an Update
// bring the item back.
func TestUpdateOfADeletedItemThatIsHandedOn(t *testing.T) {
	for _, cfg := range []pessimistic.Config{{}, {Combine: true}, {Fair: true}} {
		w := newWorld(t)
		ctx := t.Context()
		buries := rig.Must(nolock.New(w.repoTable(t, w.Client), nolock.Config{}))(t)
		rig.Must(buries.Create(ctx, Account{ID: "hot", Seq: 1, At: 1}))(t)
		if err := buries.DeleteAt(ctx, hotKey, int64(2)); err != nil {
			t.Fatal(err)
		}
		r := rig.Must(pessimistic.New(w.repoTable(t, w.Client), cfg))(t)
		mine := errors.New("no")
		c := crowdBehind(func(c *crowd) {
			_, err := r.Upsert(ctx, hotKey, func(context.Context, *Account) error { c.first(); return mine })
			rig.Is(t, err, mine)
		})
		c.done.Go(func() {
			_, err := r.Update(ctx, hotKey, func(_ context.Context, a *Account) error { a.At, a.Balance = 3, 7; return nil })
			rig.Is(t, err, repo.ErrNotFound)
		})
		c.standing(t, 1)
		c.done.Wait()
	}
}

// A context that has ended is no lock: nobody holds the item.
func TestCancelledIsNotLocked(t *testing.T) {
	for _, cfg := range []lockedread.Config{{}, {Combine: true}, {Fair: true}} {
		w := newWorld(t)
		l := w.locker(t, w.Client, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Update(ctx, hotKey, func(context.Context, *Account) error { return nil })
		_, err2 := l.Acquire(ctx, hotKey)
		for _, err := range []error{err, err2} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, repo.ErrLocked) {
				t.Errorf("%+v: error %v, want Canceled and nothing of a lock", cfg, err)
			}
		}
	}
}

// Who had committed waited, for a lease if need be, until the lock that was
// passed on, and that nobody wanted any more, was given back.
func TestACommitDoesNotWaitForWhatIsClearedAway(t *testing.T) {
	w := newWorld(t)
	rig.Must(rig.Must(optimistic.New(w.repoTable(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), Account{ID: "hot", Seq: 1, At: 1}))(t)
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
	l := w.locker(t, client, lockedread.Config{Lease: time.Hour})
	committed := make(chan struct{})
	c := crowdBehind(func(c *crowd) {
		defer close(committed)
		got := rig.Must(l.Update(t.Context(), hotKey, func(_ context.Context, a *Account) error { a.Balance++; c.first(); return nil }))(t)
		if got.Balance != 1 {
			t.Errorf("committed %+v", got)
		}
	})
	waiting, leave := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, err := l.Update(waiting, hotKey, func(context.Context, *Account) error { return nil })
		rig.Is(t, err, context.Canceled)
	}()
	c.standing(t, 1)
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

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// TestCancellationAtEveryStep cancels the caller's context before, during and
// after each request of an update: the verdict is true and nothing stays locked.
func TestCancellationAtEveryStep(t *testing.T) {
	t.Parallel()
	// What becomes of the request in whose middle the context is cancelled.
	for name, fate := range map[string]fault.Kind{
		"before it is sent":     fault.None, // the HTTP client finds the context done
		"while it is lost":      fault.DropRequest,
		"while its answer is":   fault.LoseResponse,
		"while it is truncated": fault.Truncate,
		"after it was answered": fault.DelayResponse,
	} {
		t.Run(name, func(t *testing.T) {
			fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) {
				key := repo.Key{Partition: "p", Sort: 1}
				rig.Must(s.Open(t, w, w.Client).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
				for at := range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					client := rig.Client(rig.Broken(func(_ string, n int, _ []byte) fault.Kind {
						if n == at {
							cancel()
							return fate
						}
						return fault.None
					}))
					id := fmt.Sprint(at)
					_, err := s.Open(t, w, client).Update(ctx, key, func(_ context.Context, a *fixture.Account) error {
						a.Ops = append(a.Ops, id)
						return nil
					})
					cancel()
					checkCancelled(t, w, s, key, id, err)
				}
			})
		})
	}
}

// checkCancelled compares a verdict with the item, and updates it once more.
func checkCancelled(t *testing.T, w *fixture.Fixture, s fixture.Strategy, key repo.Key, id string, err error) {
	t.Helper()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Second) // less than a lease
	defer cancel()
	after := rig.Must(s.Open(t, w, w.Client).Update(short, key, func(_ context.Context, a *fixture.Account) error { a.Balance++; return nil }))(t)
	applied := slices.Contains(after.Ops, id)
	switch {
	case err == nil && !applied:
		t.Errorf("%s: acknowledged and lost", id)
	case err != nil && applied && !errors.Is(err, repo.ErrOutcomeUnknown):
		t.Errorf("%s: applied, but %v", id, err)
	case err != nil && !errors.Is(err, context.Canceled):
		t.Errorf("%s: %v, want context.Canceled in it", id, err)
	}
}

// A call whose context had ended before says of which item it was.
func TestCancelledNamesItsItem(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	named := func(t *testing.T, r repo.Repository[fixture.Account]) {
		t.Helper()
		_, err := r.Update(ctx, repo.Key{Partition: "apple", Sort: 1}, func(context.Context, *fixture.Account) error { return nil })
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"apple"`) {
			t.Error(err)
		}
	}
	fixture.EachStrategy(t, func(t *testing.T, w *fixture.Fixture, s fixture.Strategy) { named(t, s.Open(t, w, w.Client)) })
	table := rig.Must(repo.NewTable[fixture.Account](rig.Client(), "any", repo.TableConfig{}))(t)
	named(t, rig.Must(optimistic.New(table, optimistic.Config{Combine: true}))(t))
	named(t, rig.Must(pessimistic.New(table, pessimistic.Config{Combine: true}))(t))
}

// A context that has ended is no lock: nobody holds the item.
func TestCancelledIsNotLocked(t *testing.T) {
	for _, cfg := range []lockedread.Config{{}, {Combine: true}, {Fair: true}} {
		w := fixture.New(t)
		l := w.Locker(t, w.Client, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Update(ctx, fixture.HotKey, func(context.Context, *fixture.Account) error { return nil })
		_, err2 := l.Acquire(ctx, fixture.HotKey)
		for _, err := range []error{err, err2} {
			if !errors.Is(err, context.Canceled) || errors.Is(err, repo.ErrLocked) {
				t.Errorf("%+v: error %v, want Canceled and nothing of a lock", cfg, err)
			}
		}
	}
}

// A lone caller of a combining repository whose context ended was told that the
// item is locked: by itself.
func TestALoneCallerIsNotLockedOut(t *testing.T) {
	w := fixture.New(t)
	rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
	l := w.Locker(t, w.Client, lockedread.Config{Combine: true})
	for range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(rand.N(3*time.Millisecond), cancel)
		_, err := l.Update(ctx, fixture.Key, fixture.AddOne)
		cancel()
		if errors.Is(err, repo.ErrLocked) {
			t.Errorf("nobody else wants the item: %v", err)
		}
		rig.Must(l.Update(t.Context(), fixture.Key, fixture.AddOne))(t) // behind whatever this one has left
	}
}

// A request for a lock whose caller gave up in its middle arrived behind the one
// that takes it back: the lock stayed for a lease.
func TestAnAcquireThatIsGivenUp(t *testing.T) {
	for _, cfg := range []lockedread.Config{{}, {Fair: true}, {Combine: true}} {
		w := fixture.New(t)
		table := w.Items(t, w.Client)
		rig.Must(rig.Must(optimistic.New(table, optimistic.Config{}))(t).Create(t.Context(), fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
		client := rig.NewLate(w.Client, "UpdateItem", 1, func() { time.Sleep(50 * time.Millisecond) })
		l := w.Locker(t, client, cfg)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-client.Sent; cancel() }()
		held, err := l.Acquire(ctx, fixture.Key)
		if err == nil {
			err = held.Release(t.Context())
		}
		<-client.Arrived
		if lock := rig.Must(table.Inspect(t.Context(), fixture.Key))(t); lock.Held {
			t.Errorf("%+v: %v; the lock is left behind: %+v", cfg, err, lock)
		}
	}
}

// bag is a context that cannot be compared.
type bag struct {
	context.Context
	Values map[string]any
}

// A request that took something and failed compared two contexts, which not all
// contexts bear. A panic of the client must not keep the item's place either.
func TestContextsThatCannotBeCompared(t *testing.T) {
	w := fixture.Empty(t) // without a table
	l := w.Locker(t, w.Client, lockedread.Config{})
	_, err := l.Acquire(bag{context.Background(), map[string]any{}}, fixture.Key)
	rig.Is(t, err, repo.ErrNoTable)

	w, h := fixture.NewWith(t, fixture.Key)
	l = w.Locker(t, h, lockedread.Config{})
	h.Update = func(int, *dynamodb.UpdateItemInput, rig.Send) (*dynamodb.UpdateItemOutput, error) {
		panic("the client's own")
	}
	func() {
		defer func() { _ = recover() }()
		_, _ = l.Acquire(t.Context(), fixture.Key)
		t.Error("the client's panic was lost")
	}()
	h.Update = nil
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	held, err := l.Acquire(ctx, fixture.Key)
	rig.Is(t, err)
	if err == nil {
		rig.Is(t, held.Release(ctx))
	}
}

package exclusion_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/fixture"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/lockedread"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

// cut is an HTTP client that can be cut off from the network.
type cut struct {
	next fault.Doer
	off  atomic.Bool
}

func (c *cut) Do(req *http.Request) (*http.Response, error) {
	if c.off.Load() {
		return nil, errors.New("cut off")
	}
	return c.next.Do(req)
}

func TestTheLockOfADeadHolder(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		t.Parallel()
		const lease = 3 * time.Second
		var wire *cut
		client := rig.Client(func(o *dynamodb.Options) { wire = &cut{next: o.HTTPClient}; o.HTTPClient = wire })
		dead := rig.Must(l.Open(t, w, client, lease).Lock(t.Context()))(t)
		wire.off.Store(true)
		successor := l.Open(t, w, w.Client, 30*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
		defer cancel()
		if l.Endless {
			short, cancel := context.WithTimeout(t.Context(), lease*3/2)
			defer cancel()
			_, err := successor.Lock(short)
			rig.Is(t, err, repo.ErrLocked)
			operator := rig.Must(mutex.New(w.Client, w.Table, mutex.Config{}))(t)
			if err := operator.Break(t.Context(), "x", dead.Token); err != nil {
				t.Fatal(err)
			}
		}
		next := rig.Must(successor.Lock(ctx))(t)
		if next.Token <= dead.Token {
			t.Errorf("token %d after %d", next.Token, dead.Token)
		}
		if !l.Endless && dead.Context.Err() == nil {
			t.Error("two contexts say that they hold")
		}
		wire.off.Store(false)
		rig.Is(t, dead.Release(t.Context()), repo.ErrLockLost)
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestLostAnswersOfLocks(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		for _, kind := range []fault.Kind{fault.DropRequest, fault.LoseResponse, fault.CutResponse, fault.Truncate, fault.Error500, fault.Error500After, fault.Throttle} {
			for broken := range 2 { // the answer to the lock, and to the release
				t.Run(fmt.Sprint(kind, " ", broken), func(t *testing.T) {
					client := rig.Client(rig.Broken(func(_ string, n int, _ []byte) fault.Kind {
						if n == broken {
							return kind
						}
						return fault.None
					}))
					g := rig.Must(l.Open(t, w, client, 30*time.Second).Try(t.Context()))(t)
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
					g = rig.Must(l.Open(t, w, w.Client, 30*time.Second).Try(t.Context()))(t)
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
		}
	})
}

// A release whose context ends in its middle, before the request is on its way,
// used to leave the lock to its lease.
func TestAReleaseOutlivesItsContext(t *testing.T) {
	fixture.EachLock(t, func(t *testing.T, w *fixture.Fixture, l fixture.Lock) {
		var atOnce func() // at the beginning of the next request
		early := func(stack *middleware.Stack) error {
			return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("early",
				func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
					if now := atOnce; now != nil {
						atOnce = nil
						now()
					}
					return next.HandleInitialize(ctx, in)
				}), middleware.Before)
		}
		x := l.Open(t, w, rig.Client(func(o *dynamodb.Options) { o.APIOptions = append(o.APIOptions, early) }), time.Minute)
		held := rig.Must(x.Lock(t.Context()))(t)
		ctx, cancel := context.WithCancel(t.Context())
		atOnce = cancel
		if err := held.Release(ctx); err != nil {
			t.Errorf("release: %v", err)
		}
		if ctx.Err() == nil {
			t.Error("the context did not end")
		}
		again := rig.Must(x.Try(t.Context()))(t)
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// patient is a client whose policy sleeps for an hour between two attempts, and
// whose next write of a kind is throttled once throttle was called.
func patient() (client *dynamodb.Client, throttle func()) {
	var armed atomic.Bool
	client = rig.Client(rig.WithHoursBetweenAttempts, rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
		if op != "GetItem" && armed.CompareAndSwap(true, false) {
			return fault.Throttle
		}
		return fault.None
	}))
	return client, func() { armed.Store(true) }
}

// TestThrottledHoldersDoNotSleepForLong: the sleep before a write that ends a
// hold is repeated is not the client's, but bounded by the lease.
func TestThrottledHoldersDoNotSleepForLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience) // only a test that fails waits for it
	defer cancel()
	for _, l := range fixture.Locks() {
		t.Run(l.Name, func(t *testing.T) {
			w := fixture.NewForLock(t, l.Name)
			client, throttle := patient()
			held := rig.Must(l.Open(t, w, client, time.Hour).Lock(ctx))(t)
			throttle()
			rig.Is(t, held.Release(ctx))
		})
	}
	for name, cfg := range map[string]lockedread.Config{"commit": {}, "commit, fair": {Fair: true}} {
		t.Run(name, func(t *testing.T) {
			w := fixture.New(t)
			key := repo.Key{Partition: "p", Sort: 1}
			rig.Must(rig.Must(optimistic.New(w.Items(t, w.Client), optimistic.Config{}))(t).Create(ctx, fixture.Account{ID: "p", Seq: 1, At: 1}))(t)
			client, throttle := patient()
			held := rig.Must(w.Locker(t, client, cfg).Acquire(ctx, key))(t)
			throttle()
			rig.Is(t, held.Extend(ctx))
			throttle()
			item := held.Item()
			item.Balance = 5
			rig.Must(held.Commit(ctx, item))(t)
			held = rig.Must(w.Locker(t, client, cfg).Acquire(ctx, key))(t)
			throttle()
			rig.Is(t, held.Delete(ctx))
		})
	}
	t.Run("the end of a job", func(t *testing.T) {
		w := fixture.NewForLock(t, "permit, limit 1")
		client, throttle := patient()
		s := rig.Must(jobs.New[int](client, w.Table, jobs.Config{}))(t)
		rig.Must(s.Enqueue(ctx, "x", 1))(t)
		job := rig.Must(s.Next(ctx, "x"))(t)
		throttle()
		rig.Is(t, job.Done(ctx))
	})
}

package lease_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dynahold/dynahold/internal/lease"
	"github.com/dynahold/dynahold/repo"
)

func TestExclusiveEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e lease.Exclusive
		if err := e.Lock(t.Context()); err != nil {
			t.Fatal(err)
		}
		why := errors.New("the user has gone")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer cancel()
		began := time.Now()
		err := e.Lock(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, why) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if e.TryLock() {
			t.Error("it was taken twice")
		}
		e.Unlock()
		if err := e.Lock(ctx); err != nil {
			t.Errorf("free, but the context had ended: %v", err)
		}
		e.Unlock()
		if !e.TryLock() {
			t.Error("it is not free")
		}
	})
}

func TestExclusiveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e lease.Exclusive
		_ = e.Lock(t.Context())
		var order []int // guarded by e
		var all sync.WaitGroup
		for i := range 5 {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			all.Go(func() {
				if e.Lock(ctx) == nil {
					order = append(order, i)
					e.Unlock()
				}
			})
			synctest.Wait()
			if i == 2 {
				leave()
				synctest.Wait()
			}
		}
		e.Unlock()
		all.Wait()
		if !slices.Equal(order, []int{0, 1, 3, 4}) || !e.TryLock() {
			t.Errorf("in the order %v", order)
		}
	})
}

func TestExclusiveExcludes(t *testing.T) {
	var e lease.Exclusive
	inside, left := 0, 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				if e.Lock(ctx) == nil {
					if inside++; inside != 1 {
						t.Error("two are inside")
					}
					inside--
					left++
					e.Unlock()
				}
				cancel()
			}
		})
	}
	all.Wait()
	if !e.TryLock() || left == 0 {
		t.Errorf("it is held by nobody; %d were inside", left)
	}
}

// hung is a lease whose renewals have no answer until their contexts end.
func hung(every time.Duration) *lease.Lease {
	l := begin(lease.Config{Length: length, Every: every}, time.Now().Add(length), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	l.Start(context.Background())
	return l
}

// What waits for another request of a lease waits no longer than its context.
func TestEveryCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hung(every)
		if err := l.Begin(t.Context()); err != nil { // a write that has no answer
			t.Fatal(err)
		}
		for name, call := range map[string]func(context.Context) error{"Begin": l.Begin, "BeginLast": l.BeginLast, "Extend": l.Extend} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			began := time.Now()
			if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			cancel()
		}
		l.Done()
		finish(l)
	})
	synctest.Test(t, func(t *testing.T) { // an extension behind a renewal
		l := hung(every)
		time.Sleep(every + every/10 + time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if err := l.Extend(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		finish(l)
	})
}

// The request that ends a lease waits for no extension, neither for the one
// under way nor for those that wait before it.
func TestExtensionsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hung(0)
		told := make(chan error, 3)
		for range cap(told) {
			go func() { told <- l.Extend(t.Context()) }()
		}
		synctest.Wait()
		began := time.Now()
		if err := l.BeginLast(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		for range cap(told) {
			if err := <-told; !errors.Is(err, repo.ErrReleased) || errors.Is(err, context.Canceled) {
				t.Errorf("an extension: %v", err)
			}
		}
		l.Done()
		finish(l)
	})
}

// A claim has a short time: one that has no answer must leave some of it to
// another.
func TestAClaimWithoutAnAnswerIsRepeatedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		l := begin(lease.Config{Length: length}, time.Now().Add(3*time.Second), func(ctx context.Context) error {
			if n++; n < 3 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		l.Claim(time.Now().Add(time.Second), 100*time.Millisecond)
		l.Start(context.Background())
		time.Sleep(5 * time.Second)
		synctest.Wait() // n is counted by the goroutines of the lease
		if n != 3 || l.Context().Err() != nil {
			t.Errorf("%d claims; ended: %v", n, context.Cause(l.Context()))
		}
		finish(l)
	})
}

package mutex_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// TestCloseEndsBesideAnUnlockWithoutAnEnd: it waits for the request of another
// call no longer than its own context lasts.
func TestCloseEndsBesideAnUnlockWithoutAnEnd(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l := b.locker(t, cfg)
		held := lock(t, l, "door")
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "UpdateItem" || op == "DeleteItem" {
				return fault.HoldRequest
			}
			return fault.None
		})
		unlocked := make(chan error, 1)
		go func() { unlocked <- held.Unlock(context.Background()) }()
		request := <-b.Net.Held()
		b.Faults(nil)
		ctx, cancel := context.WithCancel(t.Context())
		closed := make(chan error, 1)
		go func() { closed <- l.Close(ctx) }()
		cancel()
		rig.Is(t, <-closed, context.Canceled)
		select {
		case err := <-unlocked:
			t.Errorf("Close waited for the unlock: %v", err)
		default:
		}
		request.Release()
		rig.Is(t, <-unlocked)
	})
}

// The unlock of Do had the context of its function, which is over then: an
// outage of more than 3 s left a fail-closed lock for ever.
func TestDoUnlocksOnItsCallersContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	rig.Is(t, l.Do(t.Context(), "do", func(context.Context, *mutex.Lock) error {
		end := time.Now().Add(4 * time.Second)
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "DeleteItem" && time.Now().Before(end) {
				return fault.Error500
			}
			return fault.None
		})
		return nil
	}))
	if row := b.row(t, "do"); row != nil {
		t.Errorf("left behind: %v", row)
	}
}

// Where the client panics in an Unlock nothing renews the lock any more, so its context ends.
func TestAnUnlockByAClientThatPanics(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		held := lock(t, b.locker(t, cfg), "door")
		b.Faults(func(string, int, []byte) fault.Kind { panic("the client") })
		func() {
			defer func() { _ = recover() }()
			_ = held.Unlock(t.Context())
		}()
		b.Faults(nil)
		if cause := context.Cause(held.Context()); !errors.Is(cause, repo.ErrReleased) {
			t.Errorf("its context has ended with %v", cause)
		}
		rig.Is(t, held.Unlock(t.Context()))
	})
}

// A client that ended its goroutine behind an Unlock, as a test's does by FailNow, left the turn
// with the handle: whoever came next in its process waited for a lease, though the lock was free.
func TestAnUnlockByAClientThatEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	h := &rig.Intercept{Client: b.Client}
	l := rig.Must(mutex.New(h, b.Table, mutex.Config{Mode: mutex.FailOpen, Lease: time.Hour}))(t)
	held := rig.Must(l.Lock(t.Context(), "door"))(t)
	h.Update = func(_ int, _ *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		rig.Must(send())(t)
		runtime.Goexit()
		return nil, nil
	}
	rig.Is(t, goroutine.Apart(func() { _ = held.Unlock(t.Context()) }), goroutine.ErrEnded)
	h.Update = nil
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	rig.Is(t, rig.Must(l.Lock(ctx, "door"))(t).Unlock(t.Context()))
}

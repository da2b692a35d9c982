package mutex_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/goroutine"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/repotest"
)

func TestS3_3_SeveralLocksWithoutDeadlock(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		rig.InVirtualTime(t, 16, func(t *testing.T, network fault.Doer) { severalLocks(t, b, network, cfg) })
	})
}

func severalLocks(t *testing.T, b bench, network fault.Doer, cfg mutex.Config) {
	names := []any{"a", "b", "c", "d"}
	var inside [4]atomic.Int32
	var done sync.WaitGroup
	for worker := range 8 {
		l := b.over(t, &rig.Mortal{Next: network, Latency: time.Millisecond}, cfg)
		done.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(worker), 7))
			for range rig.Share(3, 20) {
				pick := rng.Perm(len(names))[:2+rng.IntN(2)]
				mine := []any{names[pick[0]], names[pick[0]]} // a name twice is one lock
				for _, i := range pick {
					mine = append(mine, names[i])
				}
				g, err := l.LockAll(t.Context(), mine...)
				if err != nil {
					t.Error(err)
					return
				}
				rig.Equal(t, len(g.Locks()), len(pick), "locks names")
				for _, i := range pick {
					rig.Equal(t, inside[i].Add(1), 1, "two holders of %v", names[i])
				}
				time.Sleep(time.Millisecond)
				for _, i := range pick {
					inside[i].Add(-1)
				}
				rig.Is(t, g.Unlock(t.Context()))
				rig.Is(t, context.Cause(g.Context()), repo.ErrReleased)
			}
		})
	}
	done.Wait()
}

func TestS3_3_AllOrNone(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	lock(t, l, "b")
	_, err := l.LockAll(rig.Shortly(t), "c", "a", "b")
	rig.Is(t, err, repo.ErrLocked, context.DeadlineExceeded)
	lock(t, l, "a")
	lock(t, l, "c")
	_, err = l.LockAll(t.Context(), "x", "")
	rig.Is(t, err, repo.ErrKey)
	lock(t, l, "x")
}

func TestALockThatIsWaitedForLongKeepsTheOthers(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		l := b.over(t, network, mutex.Config{Mode: mutex.FailOpen, Lease: 3 * time.Second, ClockSkew: -1})
		other := b.over(t, network, mutex.Config{})
		last := lock(t, other, "b")
		taken := make(chan *mutex.Group)
		go func() { taken <- rig.Must(l.LockAll(t.Context(), "a", "b"))(t) }()
		synctest.Wait() // it has taken "a"
		first := rig.Must(other.Inspect(t.Context(), "a"))(t).Token
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := other.Lock(ctx, "a")
		rig.Is(t, err, repo.ErrLocked)
		rig.Is(t, other.Break(t.Context(), "a", first))
		time.Sleep(5 * time.Second) // it begins anew
		rig.Is(t, last.Unlock(t.Context()))
		g := <-taken
		if token := g.Locks()[0].Token(); token <= first {
			t.Errorf("token %d after %d was broken", token, first)
		}
		if g.Context().Err() != nil {
			t.Errorf("the group ended: %v", context.Cause(g.Context()))
		}
		rig.Is(t, l.Break(t.Context(), "a", g.Locks()[0].Token()))
		rig.Is(t, g.Locks()[0].Extend(t.Context()), repo.ErrLockLost)
		synctest.Wait()
		rig.Is(t, context.Cause(g.Context()), repo.ErrLockLost)
		rig.Is(t, g.Unlock(t.Context()), repo.ErrLockLost)
	})
}

// An extension that fails for a passing reason is repeated as long as the lock lasts.
func TestALockIsWaitedForThroughAShortOutage(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		began := time.Now()
		l := rig.Must(mutex.New(rig.Client(rig.Over(network), rig.Broken(func(_ string, _ int, body []byte) fault.Kind {
			if in := time.Since(began); in > 10*time.Second && in < 20*time.Second && strings.Contains(string(body), `"S":"a"`) {
				return fault.Throttle
			}
			return fault.None
		})), b.Table, mutex.Config{Mode: mutex.FailOpen, Lease: 30 * time.Second, ClockSkew: -1}))(t)
		other := b.over(t, network, mutex.Config{})
		last, before := lock(t, other, "b"), make(chan mutex.Info, 1)
		go func() {
			time.Sleep(time.Second)
			before <- rig.Must(other.Inspect(t.Context(), "a"))(t)
			time.Sleep(39 * time.Second)
			rig.Is(t, last.Unlock(t.Context()))
		}()
		g, err := l.LockAll(t.Context(), "a", "b")
		if err != nil {
			t.Fatalf("after %v: %v", time.Since(began), err)
		}
		if token, was := g.Locks()[0].Token(), (<-before).Token; token != was {
			t.Errorf("it was taken anew, with token %d after %d", token, was)
		}
		rig.Is(t, g.Unlock(t.Context()))
	})
}

// Twenty locks in an outage took three seconds each, one after the other.
func TestAGroupIsGivenBackTogether(t *testing.T) {
	t.Parallel()
	const locks = 20
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for name, release := range map[string]func(t *testing.T, b bench, l *mutex.Locker, names []any) error{
		"unlock on a finished context": func(t *testing.T, b bench, l *mutex.Locker, names []any) error {
			g := rig.Must(l.LockAll(t.Context(), names...))(t)
			b.Always(fault.HoldRequest) // which is never answered
			return g.Unlock(gone)
		},
		"a group that did not come about": func(t *testing.T, b bench, l *mutex.Locker, names []any) error {
			lock(t, rig.Must(mutex.New(rig.Client(), b.Table, mutex.Config{}))(t), "zz")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var tries atomic.Int32
			b.Faults(func(op string, _ int, _ []byte) fault.Kind {
				if op == "UpdateItem" && tries.Add(1) == locks+1 { // the last one is held
					cancel()
				}
				if op == "DeleteItem" {
					return fault.HoldRequest
				}
				return fault.None
			})
			_, err := l.LockAll(ctx, append(names, "zz")...)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			l := b.locker(t, mutex.Config{})
			var names []any
			for i := range locks {
				names = append(names, string(rune('a'+i)))
			}
			released := make(chan error, 1)
			go func() { released <- release(t, b, l, names) }()
			select {
			case err := <-released:
				rig.Is(t, err, context.DeadlineExceeded)
			case <-time.After(rig.Patience): // half of what it takes one by one
				t.Fatal("not given back")
			}
		})
	}
}

func TestClose(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		l, other := b.locker(t, cfg), b.locker(t, cfg)
		held := map[string]*mutex.Lock{}
		for _, name := range []string{"a", "b", "c"} {
			held[name] = lock(t, l, name)
		}
		lock(t, other, "d")
		waiting := make(chan error)
		b.Count.OnRequest(func(string, []byte) {
			select {
			case waiting <- nil: // the waiter has asked
			default:
			}
		})
		go func() {
			_, err := l.Lock(t.Context(), "d")
			waiting <- err
		}()
		rig.Is(t, <-waiting)
		b.Count.OnRequest(func(_ string, body []byte) { // the work ends before others can have its lock
			for name, lock := range held {
				if strings.Contains(string(body), lock.ID()) && lock.Context().Err() == nil {
					t.Errorf("%s is freed while its holder goes on", name)
				}
			}
		})
		rig.Is(t, l.Close(t.Context()))
		for _, lock := range held {
			rig.Is(t, context.Cause(lock.Context()), repo.ErrReleased)
		}
		for err := range waiting {
			if err != nil {
				rig.Is(t, err, mutex.ErrClosed)
				break
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			lock(t, other, name)
		}
		_, err := l.TryLock(t.Context(), "e")
		rig.Is(t, err, mutex.ErrClosed)
		rig.Is(t, l.Close(t.Context()))
	})
}

// Close waited for an Unlock under way that had no deadline.
func TestCloseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	k := lock(t, l, "door")
	b.Always(fault.HoldRequest)
	ctx, cancel := context.WithCancel(t.Context())
	unlocked := make(chan error, 1)
	go func() { unlocked <- k.Unlock(ctx) }()
	<-b.Net.Held()
	gone, end := context.WithCancel(t.Context())
	end()
	closed := make(chan error, 1)
	go func() { closed <- l.Close(gone) }()
	select {
	case err := <-closed:
		var left *repo.CloseError
		if !errors.As(err, &left) || left.Token != k.Token() {
			t.Errorf("error %v", err)
		}
		rig.Is(t, err, context.Canceled)
	case err := <-unlocked:
		t.Errorf("the unlock ended first: %v", err)
	}
	b.Faults(nil)
	cancel()
	t.Log("the unlock ended with", <-unlocked)
	rig.Is(t, l.Close(t.Context()))
}

func TestCloseReportsEachLockThatItCouldNotFree(t *testing.T) {
	b := newBench(t)
	l := b.locker(t, mutex.Config{})
	want := map[string]int64{}
	for _, name := range []string{"a", "b", "c"} {
		want[name] = lock(t, l, name).Token()
	}
	broken := lock(t, l, "d")
	rig.Is(t, l.Break(t.Context(), "d", broken.Token()))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var late atomic.Int32
	b.Faults(func(string, int, []byte) fault.Kind {
		if ctx.Err() != nil {
			late.Add(1)
		}
		return fault.DropRequest
	})
	err := l.Close(ctx)
	if n := late.Load(); n > 4 { // one for each lock may have been on its way
		t.Errorf("%d requests after the deadline", n)
	}
	rig.Is(t, err, context.DeadlineExceeded)
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) != 4 {
		t.Fatalf("error %v", err)
	}
	for _, err := range joined.Unwrap() {
		var e *repo.CloseError
		if !errors.As(err, &e) {
			t.Errorf("error %v", err)
		}
	}
	b.Faults(nil)
	err = l.Close(t.Context()) // frees the rest
	rig.Is(t, err, repo.ErrLockLost, repo.ErrNotHeld)
	other := b.locker(t, mutex.Config{})
	for name, token := range want {
		if next := lock(t, other, name).Token(); next <= token {
			t.Errorf("token %d after %d", next, token)
		}
	}
}

// A client that panicked while one of several locks was taken left the others held: those that
// have no end until somebody broke them, the others extended as long as the context lasted.
func TestAClientThatPanicsWhileSeveralAreTaken(t *testing.T) {
	eachMode(t, func(t *testing.T, b bench, cfg mutex.Config) {
		h := &rig.Intercept{Client: b.Client}
		h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
			if name, _ := in.Key["name"].(*types.AttributeValueMemberS); name.Value == "b" {
				panic("boom")
			}
			return send()
		}
		l := rig.Must(mutex.New(h, b.Table, cfg))(t)
		func() {
			defer func() {
				if p := recover(); p != "boom" {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _ = l.LockAll(t.Context(), "a", "b")
		}()
		rig.Is(t, lock(t, b.locker(t, cfg), "a").Unlock(t.Context()))
	})
}

// A client that ended its goroutine, as a test's does by FailNow, while it extended a lock of a
// group that waited for another one left the group's caller waiting for ever.
func TestAClientThatEndsItsGoroutineWhileSeveralAreTaken(t *testing.T) {
	b := newBench(t)
	var clock repotest.Clock
	cfg := mutex.Config{Mode: mutex.FailOpen, Table: repo.TableConfig{Clock: clock.Now}}
	long := cfg
	long.Lease = time.Hour
	held := rig.Must(b.locker(t, long).Lock(t.Context(), "b"))(t)
	h := &rig.Intercept{Client: b.Client}
	waits := make(chan struct{}) // for the other one
	var ofA, ofB atomic.Int64
	h.Update = func(_ int, in *dynamodb.UpdateItemInput, send rig.Send) (*dynamodb.UpdateItemOutput, error) {
		switch name, _ := in.Key["name"].(*types.AttributeValueMemberS); {
		case name.Value == "b" && ofB.Add(1) == 1:
			close(waits)
		case name.Value == "a" && ofA.Add(1) == 2:
			runtime.Goexit()
		}
		return send()
	}
	group := make(chan error, 1)
	go func() {
		_, err := rig.Must(mutex.New(h, b.Table, cfg))(t).LockAll(t.Context(), "a", "b")
		group <- err
	}()
	<-waits
	clock.Advance(16 * time.Second) // more than half of the lease
	select {
	case err := <-group:
		rig.Is(t, err, goroutine.ErrEnded)
	case <-time.After(rig.Patience):
		t.Fatal("it waits for ever")
	}
	rig.Is(t, lock(t, b.locker(t, cfg), "a").Unlock(t.Context()))
	rig.Is(t, held.Unlock(t.Context()))
}

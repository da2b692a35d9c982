package semaphore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// Permits and jobs that are given up, or whose end does not arrive.

// drop loses the first requests of an operation on their way.
func drop(op string, requests int64) rig.Script {
	var seen atomic.Int64
	return func(o string, _ int, _ []byte) fault.Kind {
		if o == op && seen.Add(1) <= requests {
			return fault.DropRequest
		}
		return fault.None
	}
}

// A permit whose caller gave up while it was asked for stayed for a lease.
func TestAPermitThatIsGivenUp(t *testing.T) {
	for _, once := range []bool{false, true} {
		b := newBench(t)
		client := rig.NewLate(b.Client, "UpdateItem", 1, func() { time.Sleep(50 * time.Millisecond) })
		s := rig.Must(semaphore.New(client, b.Table, semaphore.Config{}))(t)
		acquire := s.Acquire
		if once {
			acquire = s.TryAcquire
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-client.Sent; cancel() }()
		p, err := acquire(ctx, "printer")
		if err == nil {
			rig.Is(t, p.Release(t.Context()))
		}
		<-client.Arrived
		wantRunning(t, s, "printer", 0)
	}
}

// A Release that never arrived left the permit for a lease.
func TestAReleaseThatNeverArrived(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
	b.Faults(drop("UpdateItem", 12))
	rig.Is(t, p.Release(t.Context()))
	wantRunning(t, s, "printer", 0)
}

// ender ends a context with the answer to the nth update.
type ender struct {
	*dynamodb.Client
	n, nth atomic.Int64
	end    func()
}

func (e *ender) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	out, err := e.Client.UpdateItem(ctx, in, o...)
	if e.n.Add(1) == e.nth.Load() {
		e.end()
	}
	return out, err
}

// An Acquire whose context ended while its token was drawn said that the permit
// was lost, and left it.
func TestATokenWhoseContextEnds(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	client := &ender{Client: b.Client, end: cancel}
	client.nth.Store(4)
	var seen atomic.Int64
	b.Faults(func(op string, _ int, _ []byte) fault.Kind {
		if op == "UpdateItem" {
			if n := seen.Add(1); n == 1 || n == 3 {
				return fault.LoseResponse
			}
		}
		return fault.None
	})
	s := rig.Must(semaphore.New(client, b.Table, semaphore.Config{}))(t)
	p, err := s.Acquire(ctx, "printer")
	if err == nil {
		rig.Is(t, p.Release(t.Context()))
	}
	if errors.Is(err, repo.ErrLockLost) {
		t.Error("nobody has taken it away")
	}
	wantRunning(t, s, "printer", 0)
}

// An Acquire whose context ended in the middle of a try did not say that the
// resource was busy.
func TestABusyErrorWhereverTheContextEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := rig.Must(b.open(t, semaphore.Config{}).Acquire(t.Context(), "printer"))(t)
	s := b.open(t, semaphore.Config{Wait: repo.Wait{Min: time.Millisecond, Max: time.Millisecond}})
	for i := range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		before, ended := b.Count.Total(), make(chan error)
		go func() {
			_, err := s.Acquire(ctx, "printer")
			ended <- err
		}()
		// Whoever tries again has had an answer.
		rig.Await(t, "it tries again", func() bool { return b.Count.Total() >= before+2+i%3 })
		cancel()
		rig.Is(t, <-ended, semaphore.ErrBusy)
	}
	rig.Is(t, p.Release(t.Context()))
}

package semaphore_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// What was wrong once with permits and jobs that are given up, or given back.

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
		s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{}))(t)
		acquire := s.Acquire
		if once {
			acquire = s.TryAcquire
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		p, err := acquire(ctx, "printer")
		cancel()
		if err == nil {
			rig.Is(t, p.Release(t.Context()))
		}
		<-client.Arrived
		wantResource(t, s, "printer", 0, 0, 0)
	}
}

// A job that was started when Run ended was kept by nobody, for a lease; its
// last attempt went to the dead letters unseen.
func TestAStartThatIsGivenUp(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := rig.NewLate(b.Client, "TransactWriteItems", 2, func() { <-ctx.Done(); time.Sleep(50 * time.Millisecond) })
	s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{Retry: semaphore.Retry{Attempts: 1}}))(t)
	enqueue(t, s, "staging", 1)
	go func() { <-client.Sent; cancel() }()
	rig.Is(t, s.Run(ctx, func(context.Context, *semaphore.Job[deploy]) error {
		t.Error("a job was begun after the end of Run")
		return nil
	}))
	<-client.Arrived
	wantResource(t, s, "staging", 1, 0, 0)
	audit(t, s)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	rig.Is(t, j.Done(t.Context()))
}

// A Done that never arrived could not be repeated: finished work was done again.
func TestADoneThatNeverArrived(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	enqueue(t, s, "staging", 1)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	b.Faults(drop("TransactWriteItems", 12)) // more than one call's attempts
	rig.Is(t, j.Done(t.Context()))
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

// A Release that never arrived left the permit for a lease.
func TestAReleaseThatNeverArrived(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
	b.Faults(drop("UpdateItem", 12))
	rig.Is(t, p.Release(t.Context()))
	wantResource(t, s, "printer", 0, 0, 0)
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
	s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{}))(t)
	p, err := s.Acquire(ctx, "printer")
	if err == nil {
		rig.Is(t, p.Release(t.Context()))
	}
	if errors.Is(err, repo.ErrLockLost) {
		t.Error("nobody has taken it away")
	}
	wantResource(t, s, "printer", 0, 0, 0)
}

// An Acquire whose context ended in the middle of a try did not say that the
// resource was busy.
func TestABusyErrorWhereverTheContextEnds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := rig.Must(b.open(t, semaphore.Config{}).Acquire(t.Context(), "printer"))(t)
	s := b.open(t, semaphore.Config{Wait: repo.Wait{Min: time.Microsecond, Max: 10 * time.Microsecond}})
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := s.Acquire(ctx, "printer")
		cancel()
		rig.Is(t, err, semaphore.ErrBusy)
	}
	rig.Is(t, p.Release(t.Context()))
}

// editResource changes a resource's row as somebody would by hand.
func editResource(t *testing.T, b bench, edit func(map[string]types.AttributeValue)) map[string]types.AttributeValue {
	t.Helper()
	out := rig.Must(b.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &b.Table}))(t)
	if len(out.Items) != 1 {
		t.Fatalf("%d rows, want one", len(out.Items))
	}
	edit(out.Items[0])
	rig.Must(b.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &b.Table, Item: out.Items[0]}))(t)
	return map[string]types.AttributeValue{"pk": out.Items[0]["pk"], "sk": out.Items[0]["sk"]}
}

// A permit that was taken in a row that cannot be read was not given back.
func TestAPermitBesideWhatCannotBeRead(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Limit: 5})
	rig.Is(t, rig.Must(s.Acquire(t.Context(), "printer"))(t).Release(t.Context()))
	key := editResource(t, b, func(row map[string]types.AttributeValue) {
		row["p_byhand"] = &types.AttributeValueMemberS{Value: "x"}
	})
	for range 3 {
		_, err := s.TryAcquire(t.Context(), "printer")
		rig.Is(t, err, repo.ErrSchema)
	}
	if n := b.Item(t, key)["running"].(*types.AttributeValueMemberN).Value; n != "0" {
		t.Errorf("%s run, want none", n)
	}
}

// A dead permit whose end has more digits than ours kept TryAcquire busy for
// ever.
func TestAPermitWhoseEndWasWrittenByHand(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
	editResource(t, b, func(row map[string]types.AttributeValue) {
		for name := range row {
			if strings.HasPrefix(name, "p_") {
				row[name] = &types.AttributeValueMemberN{Value: "1700000000.1234567"}
			}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), rig.Patience)
	defer cancel()
	other := rig.Must(b.open(t, semaphore.Config{}).TryAcquire(ctx, "printer"))(t)
	rig.Is(t, other.Release(t.Context()))
	rig.Is(t, p.Release(t.Context()), repo.ErrLockLost)
}

// A handler that ended its goroutine took a worker with it, and its job was
// renewed for ever.
func TestAHandlerThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.open(t, semaphore.Config{Workers: 1, Retry: semaphore.Retry{Attempts: 1}})
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var handled atomic.Int32
	rig.Is(t, s.Run(ctx, func(context.Context, *semaphore.Job[deploy]) error {
		if handled.Add(1) == 1 {
			runtime.Goexit()
		}
		time.AfterFunc(time.Second, cancel)
		return nil
	}))
	wantResource(t, s, "staging", 0, 0, 1)
	audit(t, s)
}

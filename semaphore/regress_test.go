package semaphore_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// conflicts lets the first n requests of an operation meet other transactions.
func conflicts(op string, n int64) rig.Script {
	var seen atomic.Int64
	return func(o string, _ int, _ []byte) fault.Kind {
		if o == op && seen.Add(1) <= n {
			return fault.TransactionConflict
		}
		return fault.None
	}
}

// More conflicts than the client's policy repeats must not count into the
// lease: the handler's deadline is that of the row.
func TestADeadlineCountsFromBeforeConflicts(t *testing.T) {
	b := newBench(t)
	s := b.short(t)
	enqueue(t, s, "staging", 1)
	began := time.Now()
	b.Faults(conflicts("TransactWriteItems", 12))
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	if until := j.Until(); until.After(began.Add(time.Second)) && time.Since(began) > 50*time.Millisecond {
		b.Faults(nil)
		for info, err := range s.Jobs(t.Context(), "staging") {
			rig.Is(t, err)
			if until.After(info.Until) {
				t.Errorf("the handler may go on until %v, others take over from %v", until, info.Until)
			}
		}
	}
	b.Faults(nil)
	rig.Is(t, j.Done(t.Context()))
}

func TestPermitsGoOnAfterConflicts(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{})
	b.Faults(conflicts("UpdateItem", 25))
	p := rig.Must(s.Acquire(t.Context(), "printer"))(t)
	b.Faults(conflicts("UpdateItem", 25))
	rig.Is(t, p.Release(t.Context()))
	wantResource(t, s, "printer", 0, 0, 0)
}

// A Done that is throttled for longer than the policy repeats must not leave a
// job that is renewed for ever.
func TestARefusedEndIsRepeated(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Lease: 2 * time.Second, ClockSkew: 1, Wait: repo.Wait{Max: 20 * time.Millisecond}})
	enqueue(t, s, "staging", 2)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var handled atomic.Int32
	rig.Is(t, s.Run(ctx, func(context.Context, *semaphore.Job[deploy]) error {
		if handled.Add(1) == 2 {
			cancel()
			return nil
		}
		var seen atomic.Int64
		b.Faults(func(op string, _ int, _ []byte) fault.Kind {
			if op == "TransactWriteItems" && seen.Add(1) <= 25 {
				return fault.Throttle
			}
			return fault.None
		})
		return nil
	}))
	if n := handled.Load(); n != 2 {
		t.Errorf("%d jobs handled", n)
	}
	b.Faults(nil)
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

// The producer's clock is behind: a long line stands before the job that runs.
func TestADeadJobBehindALongLineIsFound(t *testing.T) {
	b := newBench(t)
	dying, s := bench{rig.New(t)}, b.short(t)
	dying.Table = b.Table
	enqueue(t, s, "staging", 1)
	rig.Must(dying.short(t).Next(t.Context(), "staging"))(t)
	dying.Faults(func(string, int, []byte) fault.Kind { return fault.DropRequest })
	behind := b.open(t, semaphore.Config{})
	behind.SetClock(-10 * time.Second)
	enqueue(t, behind, "staging", 210)
	j := due(t, s, "staging")
	if j.Attempt() != 2 {
		t.Errorf("job %d, attempt %d", j.Value().N, j.Attempt())
	}
	rig.Is(t, j.Done(t.Context()))
}

func TestALargeJobCanFailAndStartAgain(t *testing.T) {
	b := newBench(t)
	s := b.open(t, semaphore.Config{Retry: semaphore.Retry{Min: time.Millisecond, Max: time.Millisecond}})
	size := 408_900
	for ; s.Enqueue(t.Context(), "staging", deploy{Version: strings.Repeat("x", size)}) != nil; size -= 100 {
	}
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	rig.Is(t, j.Fail(t.Context(), &noisy{}))
	rig.Is(t, due(t, s, "staging").Done(t.Context()))
	t.Logf("largest value %d bytes", size)
}

type noisy struct{}

func (*noisy) Error() string { return strings.Repeat("noise ", 1000) }

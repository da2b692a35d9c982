package jobs_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

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

// A job that was started when Run ended was kept by nobody, for a lease; its
// last attempt went to the dead letters unseen.
func TestAStartThatIsGivenUp(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := rig.NewLate(b.Client, "TransactWriteItems", 2, func() { <-ctx.Done(); time.Sleep(50 * time.Millisecond) })
	s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Retry: jobs.Retry{Attempts: 1}}))(t)
	enqueue(t, s, "staging", 1)
	go func() { <-client.Sent; cancel() }()
	rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error {
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
	s := b.open(t, jobs.Config{})
	enqueue(t, s, "staging", 1)
	j := rig.Must(s.Next(t.Context(), "staging"))(t)
	b.Faults(drop("TransactWriteItems", 12)) // more than one call's attempts
	rig.Is(t, j.Done(t.Context()))
	wantResource(t, s, "staging", 0, 0, 0)
	audit(t, s)
}

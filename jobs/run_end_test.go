package jobs_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
)

// slowly sends requests after a while.
type slowly struct {
	next  dynamodb.HTTPClient
	after time.Duration
}

func (s slowly) Do(req *http.Request) (*http.Response, error) {
	if fault.Operation(req) == "TransactWriteItems" {
		time.Sleep(s.after)
	}
	return s.next.Do(req)
}

// All tries to give a job back have 3 s together.
func TestRunEndsThreeSecondsAfterItsContext(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var over atomic.Bool
		var ends atomic.Int32
		wire := &rig.Mortal{Next: network, Lost: func(op, _ string) (before, after bool) {
			return over.Load() && op == "TransactWriteItems" && ends.Load() >= 10, false
		}}
		client := rig.Client(rig.Over(wire), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if over.Load() && op == "TransactWriteItems" && ends.Add(1) <= 10 {
				return fault.Throttle
			}
			return fault.None
		}), func(o *dynamodb.Options) { o.HTTPClient = slowly{o.HTTPClient, 250 * time.Millisecond} })
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Lease: time.Hour}))(t)
		put(t, s, "r", deploy{"v", 1})
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		rig.Is(t, s.Run(ctx, func(held context.Context, _ *jobs.Job[deploy]) error {
			over.Store(true)
			began = time.Now()
			cancel()
			return errors.New("told to stop")
		}))
		if took := time.Since(began); took > 3*time.Second+100*time.Millisecond {
			t.Errorf("it ended %v after its context", took)
		}
		synctest.Wait()
	})
}

// A job that cannot be read is failed as soon as that is possible again, as one whose
// handler has failed.
func TestAValueThatCannotBeReadInAnOutage(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var refusals atomic.Int32
		refusals.Store(30)
		client := rig.Client(rig.Over(network), rig.Broken(func(op string, _ int, body []byte) fault.Kind {
			if op == "TransactWriteItems" && strings.Contains(string(body), "Delete") && refusals.Add(-1) >= 0 {
				return fault.Throttle
			}
			return fault.None
		}))
		texts := rig.Must(jobs.New[string](client, b.Table, jobs.Config{}))(t)
		put(t, texts, "r", "no deploy")
		s := rig.Must(jobs.New[deploy](client, b.Table, jobs.Config{Lease: time.Hour, Retry: jobs.Retry{Attempts: 1}}))(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		rig.Is(t, s.Run(ctx, func(context.Context, *jobs.Job[deploy]) error { return nil }))
		r := rig.Must(s.Resource(t.Context(), "r"))(t)
		if r.Running != 0 || r.Dead != 1 {
			t.Errorf("%d run, %d are dead", r.Running, r.Dead)
		}
		rig.Is(t, s.Close(t.Context()))
	})
}

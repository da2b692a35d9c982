package semaphore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/semaphore"
)

// Who asks for a permit sleeps for milliseconds when it is throttled, whatever the client's
// policy would sleep: its process waits behind it.
func TestThrottledAcquireSleepsShortly(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var refusals atomic.Int32
		client := rig.Client(func(o *dynamodb.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 10
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Hour, nil })
			})
			o.HTTPClient = fault.New(network, fault.Config{Script: func(string, int, []byte) fault.Kind {
				if refusals.Add(-1) >= 0 {
					return fault.Throttle
				}
				return fault.None
			}})
		})
		s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{Lease: 24 * time.Hour}))(t)
		defer func() {
			_ = s.Close(context.Background())
			synctest.Wait()
		}()
		for name, acquire := range map[string]func(context.Context, string) (*semaphore.Permit, error){"Acquire": s.Acquire, "TryAcquire": s.TryAcquire} {
			refusals.Store(4) // sleeps of at most 20, 40, 80 and 160 ms
			began := time.Now()
			permit := rig.Must(acquire(t.Context(), "printer"))(t)
			if took, left := time.Since(began), refusals.Load(); took == 0 || took > 300*time.Millisecond || left >= 0 {
				t.Errorf("%s took %v, with %d refusals left", name, took, left+1)
			}
			rig.Is(t, permit.Release(t.Context()))
		}
	})
}

// A dispatcher that could not read a resource starts its jobs with the next chance.
func TestAResourceThatCouldNotBeRead(t *testing.T) {
	b := newBench(t)
	rig.InVirtualTime(t, 8, func(t *testing.T, network fault.Doer) {
		var broken atomic.Bool
		client := rig.Client(rig.Over(network), rig.Broken(func(op string, _ int, _ []byte) fault.Kind {
			if broken.Load() && (op == "GetItem" || op == "Query") {
				return fault.Error500
			}
			return fault.None
		}))
		s := rig.Must(semaphore.New[deploy](client, b.Table, semaphore.Config{Poll: time.Hour}))(t)
		ctx, cancel := context.WithCancel(t.Context())
		ended, handled := make(chan error), make(chan int, 2)
		go func() {
			ended <- s.Run(ctx, func(_ context.Context, j *semaphore.Job[deploy]) error { handled <- j.Value().N; return nil })
		}()
		synctest.Wait()
		broken.Store(true)
		put(t, s, "staging", deploy{"v", 1})
		time.Sleep(time.Minute) // looks are rare now
		broken.Store(false)
		put(t, s, "staging", deploy{"v", 2})
		time.Sleep(time.Second)
		if n := len(handled); n != 2 {
			t.Errorf("%d jobs are handled, want 2", n)
		}
		cancel()
		rig.Is(t, <-ended)
	})
}

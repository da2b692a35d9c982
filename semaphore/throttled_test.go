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
		s := rig.Must(semaphore.New(client, b.Table, semaphore.Config{Lease: 24 * time.Hour}))(t)
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

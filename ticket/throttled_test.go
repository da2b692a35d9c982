package ticket_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/fault"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/ticket"
)

// Who draws and who looks sleeps for milliseconds when it is throttled, whatever the
// client's policy would sleep: the turn may be free by then.
func TestThrottledCallersSleepShortly(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bubble) {
		var refusals atomic.Int32
		client := rig.Client(func(o *dynamodb.Options) {
			o.Retryer = retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts = 10
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Hour, nil })
			})
			o.HTTPClient = fault.New(b.wire, fault.Config{Script: func(string, int, []byte) fault.Kind {
				if refusals.Add(-1) >= 0 {
					return fault.Throttle
				}
				return fault.None
			}})
		})
		const times = 4 // sleeps of at most 20, 40, 80 and 160 ms
		shortly := func(what string, do func()) {
			t.Helper()
			refusals.Store(times)
			began := time.Now()
			do()
			if took, left := time.Since(began), refusals.Load(); took == 0 || took > 300*time.Millisecond || left >= 0 {
				t.Errorf("%s took %v, with %d refusals left", what, took, left+1)
			}
		}
		q := b.open(t, client, ticket.Config{Lease: 24 * time.Hour})
		head := lock(t, b.open(t, b.sound, ticket.Config{Lease: 24 * time.Hour}), "door")
		var mine *ticket.Ticket
		shortly("Join", func() { mine = join(t, q, "door") })
		shortly("a look", func() { rig.Must(mine.Position(t.Context()))(t) })
		done(t, head)
		refusals.Store(0)
		done(t, rig.Must(mine.Wait(t.Context()))(t))
	})
}

package ddb_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/fault"
)

// Whoever holds what others wait for does not sleep for the SDK's second between
// two attempts. How often it tries is the client's to say.
func TestThrottledWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 6
		in := fault.New(nil, fault.Config{Script: func(string, int, []byte) fault.Kind { return fault.Throttle }})
		s := &ddb.Table{Name: "t", Timeout: 10 * time.Second, Classify: asIs, Client: dynamodb.New(dynamodb.Options{
			Region: "local", HTTPClient: in, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.RateLimiter = attempts, ratelimit.None
				o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return time.Second, nil })
			})})}
		update := (&bench{table: "t"}).add("p")
		for _, c := range []struct {
			opt         ddb.Options
			least, most time.Duration // of all sleeps
		}{
			{ddb.Options{}, (attempts - 1) * time.Second, (attempts - 1) * time.Second},
			{ddb.Options{Holding: true}, 1, (20 + 40 + 80 + 160 + 320) * time.Millisecond},
			{ddb.Options{Holding: true, Timeout: 50 * time.Millisecond}, 1, (20 + 40 + 50 + 50 + 50) * time.Millisecond}, // a short lease
		} {
			before, began := in.Requests(), time.Now()
			res := s.Update(t.Context(), update, c.opt)
			if n := in.Requests() - before; n != attempts || res.Outcome != ddb.Refused || !res.Clean {
				t.Errorf("%+v: %d requests, outcome %v: %v", c.opt, n, res.Outcome, res.Err)
			}
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("%+v: %v, want %v to %v", c.opt, took, c.least, c.most)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		began := time.Now()
		if s.Update(ctx, update, ddb.Options{}); time.Since(began) > time.Millisecond {
			t.Errorf("the sleep outlived its context by %v", time.Since(began)-time.Millisecond)
		}
	})
}

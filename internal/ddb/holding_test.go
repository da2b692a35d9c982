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

// Behind whom others wait, does not sleep for the SDK's second between two attempts:
// it tries again and again meanwhile. When it gives up is the client's to say.
func TestThrottledWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 6
		var sent []time.Time
		in := fault.New(nil, fault.Config{Script: func(string, int, []byte) fault.Kind {
			sent = append(sent, time.Now())
			return fault.Throttle
		}})
		s := &ddb.Table{Name: "t", Timeout: 10 * time.Second, Classify: asIs, Client: dynamodb.New(dynamodb.Options{
			Region: "local", HTTPClient: in, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
				o.MaxAttempts, o.RateLimiter = attempts, ratelimit.None
				o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) { return time.Duration(n) * 100 * time.Millisecond, nil })
			})})}
		update := (&bench{table: "t"}).add("p")
		const patience = (1 + 2 + 3 + 4 + 5) * 100 * time.Millisecond // the policy's sleeps
		for _, c := range []struct {
			opt         ddb.Options
			least, most int           // requests
			longest     time.Duration // sleep
		}{
			{ddb.Options{}, attempts, attempts, 500 * time.Millisecond},
			{ddb.Options{Holding: true}, attempts + 1, 1000, 500 * time.Millisecond},
			{ddb.Options{Holding: true, Timeout: 50 * time.Millisecond}, 30, 1000, 50 * time.Millisecond}, // a short lease
			{ddb.Options{Holding: true, Single: true}, 1, 1, 0},
		} {
			sent = nil
			res := s.Update(t.Context(), update, c.opt)
			if n := len(sent); n < c.least || n > c.most || res.Outcome != ddb.Refused || !res.Clean {
				t.Errorf("%+v: %d requests, outcome %v: %v", c.opt, n, res.Outcome, res.Err)
			}
			for i := range sent[1:] {
				if slept := sent[i+1].Sub(sent[i]); slept > c.longest || c.opt.Holding && i == 0 && slept > 20*time.Millisecond {
					t.Errorf("%+v: sleep %d lasts %v", c.opt, i+1, slept)
				}
			}
			if took := sent[len(sent)-1].Sub(sent[0]); took != patience && !c.opt.Single {
				t.Errorf("%+v: given up after %v, by the policy after %v", c.opt, took, patience)
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

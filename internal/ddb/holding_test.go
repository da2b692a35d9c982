package ddb_test

import (
	"context"
	"errors"
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

// table has a policy that allows so many attempts, and sleeps 100 ms longer after each.
func table(attempts int, in dynamodb.HTTPClient) *ddb.Table {
	return &ddb.Table{Name: "t", Timeout: 10 * time.Second, Classify: asIs, Client: dynamodb.New(dynamodb.Options{
		Region: "local", HTTPClient: in, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts, o.RateLimiter = attempts, ratelimit.None
			o.Backoff = retry.BackoffDelayerFunc(func(n int, _ error) (time.Duration, error) { return time.Duration(n) * 100 * time.Millisecond, nil })
		})})}
}

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
		s := table(attempts, in)
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

// The policy begins with its first sleep where a transaction has refused the attempts
// before: by their number it would sleep for as long as it ever does.
func TestThePolicyAfterATransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Time
		in := fault.New(nil, fault.Config{Script: func(_ string, n int, _ []byte) fault.Kind {
			sent = append(sent, time.Now())
			if n < ddb.MostOngoing {
				return fault.TransactionConflict
			}
			return fault.Throttle
		}})
		res := table(3, in).Update(t.Context(), (&bench{table: "t"}).add("p"), ddb.Options{})
		if len(sent) != ddb.MostOngoing+3 || res.Outcome != ddb.Refused || !res.Clean {
			t.Fatalf("%d requests, outcome %v: %v", len(sent), res.Outcome, res.Err)
		}
		for i, want := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
			if slept := sent[ddb.MostOngoing+i+1].Sub(sent[ddb.MostOngoing+i]); slept != want {
				t.Errorf("sleep %d of the policy lasts %v", i+1, slept)
			}
		}
	})
}

// Who takes something, and leaves between two attempts, waits only where one of them may
// have taken it.
func TestACallerThatLeavesBetweenAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for kind, want := range map[fault.Kind]struct {
			outcome ddb.Outcome
			took    time.Duration
		}{
			fault.Throttle:    {ddb.Refused, time.Millisecond},
			fault.DropRequest: {ddb.Unknown, time.Millisecond + ddb.Settle},
		} {
			in := fault.New(nil, fault.Config{Script: func(string, int, []byte) fault.Kind { return kind }})
			ctx, cancel := context.WithCancelCause(t.Context())
			mine := errors.New("shutting down")
			time.AfterFunc(time.Millisecond, func() { cancel(mine) })
			began := time.Now()
			res := table(10, in).Update(ctx, (&bench{table: "t"}).add("p"), ddb.Options{AwaitAnswer: true})
			if took := time.Since(began); took != want.took || res.Outcome != want.outcome {
				t.Errorf("%v: outcome %v after %v: %v", kind, res.Outcome, took, res.Err)
			}
			if !errors.Is(res.Err, context.Canceled) || !errors.Is(res.Err, mine) {
				t.Errorf("%v: %v", kind, res.Err)
			}
		}
	})
}

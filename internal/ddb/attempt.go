package ddb

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// attempt stands, for one call, in the place of the client's retryer and HTTP
// client: it keeps the SDK from retrying by itself, and sees whether the
// request left the process. One attempt value serves all attempts of a call.
type attempt struct {
	policy aws.Retryer         // the client's own, nil until the first attempt
	inner  dynamodb.HTTPClient // the client's own
	opted  bool                // the SDK ran options, so sent can be believed
	sent   bool                // this attempt reached the HTTP client
	host   string              // endpoint that was asked
	region string
}

var _ aws.RetryerV2 = (*attempt)(nil)

func (a *attempt) options(o *dynamodb.Options) {
	if o.Retryer != nil {
		a.policy = o.Retryer
	}
	a.region = o.Region
	a.inner = o.HTTPClient
	a.opted = a.inner != nil
	o.Retryer = a
	if a.opted {
		o.HTTPClient = a
	}
}

// Do implements [dynamodb.HTTPClient].
func (a *attempt) Do(req *http.Request) (*http.Response, error) {
	a.sent = true
	a.host = req.URL.Host
	return a.inner.Do(req)
}

func (a *attempt) IsErrorRetryable(error) bool { return false }
func (a *attempt) MaxAttempts() int            { return 1 }

func (a *attempt) RetryDelay(int, error) (time.Duration, error) { return 0, nil }

func (a *attempt) GetRetryToken(context.Context, error) (func(error) error, error) {
	return noToken, nil
}

func (a *attempt) GetInitialToken() func(error) error { return noToken }

// GetAttemptToken keeps the client's rate limit (adaptive mode) in force.
func (a *attempt) GetAttemptToken(ctx context.Context) (func(error) error, error) {
	if v2, ok := a.policy.(aws.RetryerV2); ok {
		return v2.GetAttemptToken(ctx)
	}
	return noToken, nil
}

func noToken(error) error { return nil }

// retryer is the client's policy; a client that does not run options (a
// wrapper that drops them) gets the SDK's standard one.
func (a *attempt) retryer() aws.Retryer {
	if a.policy == nil {
		a.policy = retry.NewStandard()
	}
	return a.policy
}

// class says what one failed attempt proves.
type class int

const (
	refused   class = iota // certainly not applied, and repeating is pointless
	again                  // certainly not applied, may be repeated
	ambiguous              // may have been applied
)

// classify judges the error of one attempt.
func (a *attempt) classify(err error) class {
	if a.opted && !a.sent {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || a.retryer().IsErrorRetryable(err) {
			return again
		}
		return refused
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return again
	}
	var undecoded *smithy.DeserializationError
	var api smithy.APIError
	if errors.As(err, &undecoded) || !errors.As(err, &api) {
		return ambiguous
	}
	var reply *smithyhttp.ResponseError
	switch {
	case errors.As(err, &reply) && reply.HTTPStatusCode() >= 500:
		return ambiguous
	case reply == nil && api.ErrorFault() == smithy.FaultServer:
		return ambiguous
	}
	// The SDK's retryers do not know these.
	if api.ErrorCode() == "ReplicatedWriteConflictException" || Conflicted(err) {
		return again
	}
	if a.retryer().IsErrorRetryable(err) {
		return again
	}
	return refused
}

// conditionFailed returns the image of a failed condition.
func conditionFailed(err error) (Item, bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

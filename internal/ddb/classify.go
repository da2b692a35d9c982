package ddb

import (
	"context"
	"errors"
	"net"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// class says what one failed attempt proves.
type class int

const (
	refused   class = iota // certainly not applied, and repeating is pointless
	again                  // certainly not applied, may be repeated
	ambiguous              // may have been applied
	spent                  // may have been applied, and repeating is pointless
)

// classify judges the error of one attempt, as far as its last request tells.
func (s *sight) classify(err error) class {
	if s.unsent() {
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || s.retryer().IsErrorRetryable(err) {
			return again
		}
		return refused
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return again
	}
	var undecoded *smithy.DeserializationError
	var partial *ReplyError
	var api smithy.APIError
	if errors.As(err, &undecoded) || errors.As(err, &partial) || !errors.As(err, &api) {
		return ambiguous
	}
	var reply *smithyhttp.ResponseError
	switch {
	case errors.As(err, &reply) && reply.HTTPStatusCode() >= 500:
		return ambiguous
	case reply == nil && api.ErrorFault() == smithy.FaultServer:
		return ambiguous
	}
	var used *types.IdempotentParameterMismatchException
	var running *types.TransactionInProgressException
	switch {
	case errors.As(err, &used):
		// The token is this call's own: a request of it was there before.
		return spent
	case errors.As(err, &running):
		return ambiguous // so was one here, and it is being applied
	}
	// The SDK's retryers do not know these.
	if api.ErrorCode() == "ReplicatedWriteConflictException" || Conflicted(err) {
		return again
	}
	if s.retryer().IsErrorRetryable(err) {
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

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
	var api smithy.APIError
	switch {
	case s.unsent():
		return s.unlessOver(err)
	case undialled(err) && !s.led:
		return again
	case is[*smithy.DeserializationError](err), is[*ReplyError](err), !errors.As(err, &api), failedInside(err, api):
		return ambiguous
	case is[*types.IdempotentParameterMismatchException](err):
		return spent // the token is this call's own: a request of it was there before
	case is[*types.TransactionInProgressException](err):
		return ambiguous // so was one here, and it is being applied
	case api.ErrorCode() == "ReplicatedWriteConflictException", Conflicted(err): // the SDK's retryers do not know these
		return again
	case s.retryer().IsErrorRetryable(err):
		return again
	}
	return refused
}

// unjudged reports whether the service has refused an attempt of a class for a reason that
// is none of the item's: there were too many requests, a transaction was at the item, or
// credentials were refused that have been good before. That a request is invalid is found
// out behind its condition, in which a copy that was applied would have shown; what the
// endpoint does not know at all it has never applied.
func (c *call) unjudged(kind class, err error) bool {
	var api smithy.APIError
	if kind != refused && kind != again || c.seen.unsent() || !errors.As(err, &api) {
		return false
	}
	switch api.ErrorCode() {
	case "ValidationException", "SerializationException", "ItemCollectionSizeLimitExceededException", "ResourceNotFoundException",
		"UnknownOperationException", "InvalidAction":
		return false
	}
	return kind == again || c.endpoint.grants.Load() && api.ErrorCode() != "TransactionCanceledException" // its reasons pass, or are as above
}

// unlessOver is the class of an attempt that was not sent: another may be.
func (s *sight) unlessOver(err error) class {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || s.retryer().IsErrorRetryable(err) {
		return again
	}
	return refused
}

// undialled reports whether there was no connection.
func undialled(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// failedInside reports whether the service has failed while it worked on a request.
func failedInside(err error, api smithy.APIError) bool {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) {
		return reply.HTTPStatusCode() >= 500
	}
	return api.ErrorFault() == smithy.FaultServer
}

// is reports whether an error is of a type, or wraps one that is.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// conditionFailed returns the image of a failed condition.
func conditionFailed(err error) (Item, bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, false
}

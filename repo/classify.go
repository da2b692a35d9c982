package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// meaning is what an error of a request is for this package's users: one of its
// sentinels, and what to do about it. The zero meaning: nothing but itself.
type meaning struct {
	sentinel error
	hint     string // "" without
}

// classify adds the sentinel of this package to an error of a request, once, where
// it leaves the transport: ErrNoTable, ErrDenied, ErrConfig, ErrSchema or
// ErrTooLarge. Other errors come back as they are.
func classify(err error) error {
	if err == nil {
		return nil
	}
	switch m := meaningOf(err); {
	case m.sentinel == nil:
		return err
	case m.hint == "":
		return fmt.Errorf("%w: %w", m.sentinel, err)
	default:
		return fmt.Errorf("%w: %s: %w", m.sentinel, m.hint, err)
	}
}

// meaningOf asks the checks of this library first, then what kept a request from being
// sent, and then the service's answer.
func meaningOf(err error) meaning {
	for _, read := range []func(error) meaning{ofCheck, ofUnsent, ofCode, ofReasons} {
		if m := read(err); m.sentinel != nil {
			return m
		}
	}
	return meaning{}
}

// ofCheck is the meaning of what this library has found by itself, and of items that are
// too large, whoever says so.
func ofCheck(err error) meaning {
	switch {
	case is[*ddb.SizeError](err), ddb.Oversize(err):
		return meaning{sentinel: ErrTooLarge}
	case is[*ddb.ImageError](err), is[*stored.ShapeError](err):
		return meaning{sentinel: ErrSchema}
	case is[*ddb.MergeError](err):
		return meaning{sentinel: ErrConfig}
	}
	return meaning{}
}

// ofUnsent is the meaning of a request that its client did not send.
func ofUnsent(err error) meaning {
	var unsent *ddb.UnsentError
	if !errors.As(err, &unsent) || unsent.Cancelled {
		return meaning{}
	}
	// The SDK has no types for these; the text only chooses the hint.
	text, late := unsent.Error(), errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	switch credentials := strings.Contains(text, "identity") || strings.Contains(text, "credentials"); {
	case credentials && late:
		return meaning{ErrDenied, "the client's credentials did not come in time"}
	case credentials:
		return meaning{ErrDenied, "the client has no usable credentials"}
	case !late:
		return meaning{ErrConfig, "the client cannot send: check its region and endpoint"}
	}
	return meaning{}
}

// ofCode is the meaning of an error of the service.
func ofCode(err error) meaning {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return meaning{}
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		return meaning{ErrNoTable, "create it with EnsureTable, or check region and endpoint"}
	case "AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException",
		"MissingAuthenticationTokenException", "MissingAuthenticationToken", "ExpiredTokenException", "InvalidClientTokenId", "OptInRequired":
		return meaning{ErrDenied, "check credentials, region and policy"}
	case "ValidationException":
		return meaning{sentinel: ErrSchema}
	case "ItemCollectionSizeLimitExceededException":
		return meaning{ErrTooLarge, "the items of one partition key, with their local indexes"}
	case "UnknownOperationException", "InvalidAction":
		var of *smithy.OperationError
		if errors.As(err, &of) && strings.HasPrefix(of.OperationName, "Transact") {
			return meaning{ErrNoTransactions, "changes of single items need none"}
		}
		return meaning{ErrConfig, "the endpoint does not know the operation"}
	}
	return meaning{}
}

// ofReasons is the meaning of a cancelled transaction one of whose items is not valid. Why, its
// own text does not say.
func ofReasons(err error) meaning {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		for _, r := range cancelled.CancellationReasons {
			if aws.ToString(r.Code) == "ValidationError" {
				return meaning{ErrSchema, aws.ToString(r.Message)}
			}
		}
	}
	return meaning{}
}

// is reports whether an error is of a type, or wraps one that is.
func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

package repo

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/telemetry"
)

// Verdict is what became of a change.
type Verdict int

// What may have become of a change.
const (
	Written    Verdict = iota // it was applied, once
	NotWritten                // nothing was written, and nothing of it will be
	Unknown                   // it was applied, or was not, and no evidence is left
)

func (v Verdict) String() string {
	return [...]string{"written", "not written", "unknown"}[v]
}

// VerdictOf tells by the error of a call what became of its change: whoever keeps
// accounts of what was done needs no more than this. It knows the errors of all
// packages of this module; nil is Written, also where the change had nothing to
// write, and so are ErrDone, once.ErrNoResult and delegate.ErrRepeated. What a change's own
// function returns is NotWritten, also where it is one of these, of another call. The Do of a
// lock, a turn or a permit has no change but its function's: of what that returns it is told as
// of the call that has made it. An EnqueueMany of package jobs that was made in part is Unknown:
// its ManyError tells which.
func VerdictOf(err error) Verdict {
	var returned *telemetry.Returned
	var partly *telemetry.Partly
	switch {
	case errors.As(err, &returned):
		return NotWritten
	case errors.As(err, &partly):
		return Unknown
	case err == nil, errors.Is(err, ErrDone), errors.Is(err, telemetry.NoResult): // of the latter the result alone is missing
		return Written
	case errors.Is(err, ErrOutcomeUnknown):
		return Unknown
	}
	return NotWritten
}

// Retryable reports whether a call that failed wrote nothing and may go through if
// it is made again: others held the item or wrote first, a lock was lost, no job was
// due, the service was busy or out of reach. Not after [ErrOutcomeUnknown], which only a
// change under an id (Once) may follow, nor after an error of the program's own, also where
// the lock was lost beside it, nor where nothing but the caller's context ended the call.
func Retryable(err error) bool {
	var ended *telemetry.Final
	if VerdictOf(err) != NotWritten || errors.As(err, &ended) {
		return false
	}
	for _, final := range []error{ErrNotFound, ErrExists, ErrStale, ErrCondition, ErrMismatch, ErrNotUnique, ErrReleased, ErrNotHeld, ErrSchema, ErrKey, ErrFixed, ErrTooLarge, ErrNoTable, ErrDenied, ErrConfig, ErrNested, ErrPage} {
		if errors.Is(err, final) {
			return false
		}
	}
	for _, passing := range []error{ErrConflict, ErrLocked, ErrLockExpired, ErrLockLost, telemetry.Busy, telemetry.NoWork} {
		if errors.Is(err, passing) {
			return true
		}
	}
	var api smithy.APIError
	switch answered := errors.As(err, &api); {
	case answered && api.ErrorFault() == smithy.FaultServer:
		return true
	case !answered && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
		return false // the SDK takes the latter for a passing one
	}
	return slices.ContainsFunc(retry.DefaultRetryables, func(r retry.IsErrorRetryable) bool {
		return r.IsErrorRetryable(err) == aws.TrueTernary
	})
}

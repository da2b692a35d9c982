package repo

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/internal/telemetry"
)

// errorTypes are the names of errors in spans and metrics (error.type). The first that
// fits counts: what is nearest to the caller.
var errorTypes = []struct {
	err  error
	name string
}{
	{ErrDone, "done"}, // wraps what came behind it
	{ErrOutcomeUnknown, "outcome_unknown"},
	{telemetry.NoResult, "no_result"}, // wraps why it was not kept
	{ErrNested, "nested"},             // wrapped by whatever a change or a closure makes of it
	{ErrConflict, "conflict"},
	{ErrLockLost, "lock_lost"},
	{ErrLockExpired, "lock_expired"},
	{ErrLocked, "locked"},
	{ErrNotHeld, "not_held"},
	{ErrReleased, "released"},
	{ErrNotFound, "not_found"},
	{ErrExists, "exists"},
	{ErrCondition, "condition"},
	{ErrMismatch, "mismatch"},
	{ErrNotUnique, "not_unique"},
	{ErrStale, "stale"},
	{ErrFixed, "fixed"},
	{ErrKey, "key"},
	{ErrPage, "page"},
	{ErrTooLarge, "too_large"},
	{ErrNoTable, "no_table"},
	{ErrDenied, "denied"},
	{ErrConfig, "config"},
	{ErrSchema, "schema"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline_exceeded"},
}

// other is what the conventions have for an error without a name.
const other = "_OTHER"

// errorType names an error: by the library's name for it, by the name that the error
// gives itself, such as a user's own, by the service's code, or as other.
func errorType(err error) string {
	for _, t := range errorTypes {
		if errors.Is(err, t.err) {
			return t.name
		}
	}
	var named interface{ ErrorType() string }
	if errors.As(err, &named) {
		return ownType(named)
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return other
}

// ownType is the name that an error gives itself. Where that panics it has none: whoever tells
// of it has others' calls to end.
func ownType(err interface{ ErrorType() string }) (name string) {
	defer func() {
		_ = recover()
		name = cmp.Or(name, other)
	}()
	return err.ErrorType()
}

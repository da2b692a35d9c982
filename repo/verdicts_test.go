package repo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/telemetry"
	"github.com/dynahold/dynahold/repo"
)

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		err     error
		verdict repo.Verdict
		again   bool
	}{
		{nil, repo.Written, false},
		{repo.ErrOutcomeUnknown, repo.Unknown, false},
		{fmt.Errorf("%w: %w", repo.ErrOutcomeUnknown, &types.InternalServerError{}), repo.Unknown, false},
		{fmt.Errorf("%w: %w", repo.ErrDone, repo.ErrOutcomeUnknown), repo.Written, false},
		{fmt.Errorf("%w: %w", repo.ErrDone, repo.ErrLockLost), repo.Written, false},
		{&repo.ConflictError{}, repo.NotWritten, true},
		{&repo.LockedError{}, repo.NotWritten, true},
		{fmt.Errorf("%w: %w", &repo.LockedError{}, context.DeadlineExceeded), repo.NotWritten, true},
		{repo.ErrLockLost, repo.NotWritten, true},
		{repo.ErrLockExpired, repo.NotWritten, true},
		{&types.ProvisionedThroughputExceededException{}, repo.NotWritten, true},
		{&types.InternalServerError{}, repo.NotWritten, true},
		{&repo.ConditionError{}, repo.NotWritten, false},
		{repo.ErrNotFound, repo.NotWritten, false},
		{repo.ErrStale, repo.NotWritten, false},
		{fmt.Errorf("%w: %w", repo.ErrSchema, &types.InternalServerError{}), repo.NotWritten, false},
		{context.Canceled, repo.NotWritten, false},
		{fmt.Errorf("GetItem: %w", context.DeadlineExceeded), repo.NotWritten, false},
		{fmt.Errorf("%w: %w", context.DeadlineExceeded, &types.ProvisionedThroughputExceededException{}), repo.NotWritten, true},
		{errors.New("my own"), repo.NotWritten, false},
		{fmt.Errorf("x: %w", telemetry.Return(repo.ErrDone)), repo.NotWritten, false},
		{telemetry.Return(fmt.Errorf("%w: %w", repo.ErrOutcomeUnknown, &types.InternalServerError{})), repo.NotWritten, true},
	} {
		if v, again := repo.VerdictOf(c.err), repo.Retryable(c.err); v != c.verdict || again != c.again {
			t.Errorf("%v: %v, again %v; want %v, %v", c.err, v, again, c.verdict, c.again)
		}
	}
}

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

// declined is an error of a user who names it for telemetry.
type declined struct{ error }

func (declined) ErrorType() string { return "card_declined" }

// coded is an error of a user whose name is that of a code which it may not have.
type coded struct{ code *string }

func (*coded) Error() string       { return "coded" }
func (c *coded) ErrorType() string { return *c.code }

func TestErrorType(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("key: %w", repo.ErrConflict), "conflict"},
		{errors.Join(context.Canceled, repo.ErrOutcomeUnknown), "outcome_unknown"},
		{fmt.Errorf("%w: %w", telemetry.NoResult, repo.ErrTooLarge), "no_result"}, // the latter is why
		{fmt.Errorf("pay: %w", declined{errors.New("no")}), "card_declined"},
		{errors.Join(declined{errors.New("no")}, repo.ErrLockLost), "lock_lost"},
		{&types.ProvisionedThroughputExceededException{}, "ProvisionedThroughputExceededException"},
		{errors.New("mine"), "_OTHER"},
		{&coded{new(string)}, "_OTHER"}, // an empty type is that of a success
		{(*coded)(nil), "_OTHER"},       // it panics, where a job or others' changes go on
	} {
		if got := repo.ErrorType(c.err); got != c.want {
			t.Errorf("%v: %s, want %s", c.err, got, c.want)
		}
	}
}

package semaphore

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/dynahold/dynahold/repo"
)

// errNoTransactions is why jobs are impossible in a table.
var errNoTransactions = errors.New("it is a global table with strong consistency, which has no transactions and no TTL: jobs need transactions (permits do not)")

// checkTransactions refuses a table that has no transactions.
func (s *store) checkTransactions(ctx context.Context) error {
	var out *dynamodb.DescribeTableOutput
	err := s.core.ReadWith(ctx, "DescribeTable", func(ctx context.Context, o func(*dynamodb.Options)) (err error) {
		out, err = s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.core.Name}, o)
		return err
	})
	if err != nil {
		return err
	}
	if out.Table.MultiRegionConsistency == types.MultiRegionConsistencyStrong {
		return fmt.Errorf("%w: table %q: %w", repo.ErrSchema, s.core.Name, errNoTransactions)
	}
	return nil
}

// explain says of a transaction that was refused as a whole whether the table
// has none. One more request, in that case only.
func (s *store) explain(ctx context.Context, err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
		return err
	}
	if why := s.checkTransactions(ctx); errors.Is(why, errNoTransactions) {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

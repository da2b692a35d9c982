package jobs

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

// explain says of a transaction that was refused as a whole whether the table
// has none. One more request, in that case only.
func (s *store) explain(ctx context.Context, err error) error {
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationException" {
		return err
	}
	strong := false
	_ = orEnded(func() error { // others wait for the answer
		return s.table.Core.ReadWith(ctx, "DescribeTable", func(ctx context.Context, o func(*dynamodb.Options)) (any, error) {
			out, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &s.table.Core.Name}, o)
			strong = err == nil && out.Table != nil && out.Table.MultiRegionConsistency == types.MultiRegionConsistencyStrong
			return out, err
		})
	})
	if !strong {
		return err
	}
	return fmt.Errorf("%w: table %q: %w: %w", repo.ErrSchema, s.table.Core.Name, errNoTransactions, err)
}

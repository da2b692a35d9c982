package txn_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// strong is a client of a global table with strong consistency.
type strong struct{ *dynamodb.Client }

func (c strong) DescribeTable(ctx context.Context, in *dynamodb.DescribeTableInput, o ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	out, err := c.Client.DescribeTable(ctx, in, o...)
	if err == nil {
		out.Table.MultiRegionConsistency = types.MultiRegionConsistencyStrong
	}
	return out, err
}

// TransactWriteItems asks for what no service has, which refuses it as this one
// would.
func (c strong) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	bad := *in
	bad.TransactItems = nil
	for range 101 {
		bad.TransactItems = append(bad.TransactItems, in.TransactItems[0])
	}
	out, err := c.Client.TransactWriteItems(ctx, &bad, o...)
	if err == nil {
		err = errors.New("it was not refused")
	}
	return out, err
}

// Two items of a table without transactions are refused, by its name; one is as
// good as anywhere.
func TestAGlobalTableWithStrongConsistency(t *testing.T) {
	w := newWorld(t)
	r := rig.Must(optimistic.New(rig.Must(repo.NewTable[counted](strong{w.Client}, w.Table+"-o", repo.TableConfig{}))(t), optimistic.Config{}))(t)
	create := func(ids ...string) error {
		return txn.Run(t.Context(), func(ctx context.Context, tx *txn.Tx) error {
			for _, id := range ids {
				if _, err := r.In(tx).Create(ctx, counted{ID: w.id(id)}); err != nil {
					return err
				}
			}
			return nil
		})
	}
	rig.Is(t, create("a"))
	err := create("b", "c")
	rig.Is(t, err, repo.ErrSchema)
	if err == nil || !strings.Contains(err.Error(), "global table with strong consistency") || !strings.Contains(err.Error(), w.Table) {
		t.Errorf("error %v", err)
	}
}

package repo

import (
	"context"
	"fmt"
	"iter"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/protocol"
)

// QueryOption narrows or orders a query.
type QueryOption func(*queryPlan)

type queryPlan struct {
	narrow     func(sk field) (expression.KeyConditionBuilder, error)
	descending bool
	eventually bool
	pageSize   int32
	err        error
}

// Descending returns the greatest sort key first.
func Descending() QueryOption { return func(p *queryPlan) { p.descending = true } }

// Eventually reads with eventual consistency, at half the price.
func Eventually() QueryOption { return func(p *queryPlan) { p.eventually = true } }

// PageSize bounds how many items one request reads. Default: DynamoDB's 1 MB.
func PageSize(n int) QueryOption {
	return func(p *queryPlan) {
		if n < 1 || n > 1<<20 {
			p.err = fmt.Errorf("%w: PageSize(%d): use 1 to %d", ErrConfig, n, 1<<20)
			return
		}
		p.pageSize = int32(n)
	}
}

// SortPrefix keeps items whose sort key, a text, begins with prefix.
func SortPrefix(prefix string) QueryOption {
	return narrowed(func(sk field) (cond expression.KeyConditionBuilder, _ error) {
		if sk.kind != "S" {
			return cond, fmt.Errorf("%w: SortPrefix is for texts, the sort key (attribute %q) is %s", ErrKey, sk.name, kindName(sk.kind))
		}
		if err := ddb.KeptText(ddb.Text(prefix)); err != nil {
			return cond, fmt.Errorf("%w: SortPrefix: %w", ErrKey, err)
		}
		return expression.Key(sk.name).BeginsWith(prefix), nil
	})
}

// SortBetween keeps items whose sort key is from lo to hi, both included.
func SortBetween(lo, hi any) QueryOption {
	return narrowed(func(sk field) (cond expression.KeyConditionBuilder, _ error) {
		from, err := encodePart("sort", lo, sk, maxSort)
		if err != nil {
			return cond, fmt.Errorf("SortBetween from: %w", err)
		}
		to, err := encodePart("sort", hi, sk, maxSort)
		if err != nil {
			return cond, fmt.Errorf("SortBetween to: %w", err)
		}
		if order, _ := protocol.Compare(from, to); order > 0 {
			return cond, fmt.Errorf("%w: SortBetween(%v, %v): the first is greater than the second", ErrKey, lo, hi)
		}
		return expression.Key(sk.name).Between(expression.Value(from), expression.Value(to)), nil
	})
}

// narrowed is an option that can be given once.
func narrowed(narrow func(sk field) (expression.KeyConditionBuilder, error)) QueryOption {
	return func(p *queryPlan) {
		if p.narrow != nil {
			p.err = fmt.Errorf("%w: the query narrows the sort key twice: DynamoDB takes one condition", ErrConfig)
		}
		p.narrow = narrow
	}
}

// Query iterates over the items of a partition in the order of their sort
// keys, with consistent reads. Stubs and tombstones are left out. An error
// ends the iteration. One request per page, one read unit per 4 KB read.
func (t *Table[T]) Query(ctx context.Context, partition any, options ...QueryOption) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		in, err := t.queryInput(partition, options)
		if err != nil {
			yield(zero, err)
			return
		}
		page := func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) ([]ddb.Item, ddb.Item, error) {
			in.ExclusiveStartKey = start
			out, err := t.client.Query(ctx, in, o)
			if err != nil {
				return nil, nil, err
			}
			return out.Items, out.LastEvaluatedKey, nil
		}
		for raw, err := range t.core.Pages(ctx, "Query", page) {
			if err != nil {
				yield(zero, err)
				return
			}
			var item T
			if err = t.checkShape(raw); err == nil && t.core.Hidden(raw) {
				continue
			} else if err == nil {
				item, err = t.decode(raw)
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

func (t *Table[T]) queryInput(partition any, options []QueryOption) (*dynamodb.QueryInput, error) {
	var plan queryPlan
	for _, o := range options {
		o(&plan)
	}
	if plan.err != nil {
		return nil, plan.err
	}
	pk, err := encodePart("partition", partition, t.schema.pk, maxPartition)
	if err != nil {
		return nil, err
	}
	cond := expression.Key(t.schema.pk.name).Equal(expression.Value(pk))
	if plan.narrow != nil {
		if t.schema.sk.name == "" {
			return nil, fmt.Errorf("%w: the query narrows the sort key, but the table has none", ErrKey)
		}
		sort, err := plan.narrow(t.schema.sk)
		if err != nil {
			return nil, err
		}
		cond = cond.And(sort)
	}
	expr, err := expression.NewBuilder().WithKeyCondition(cond).Build()
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", ErrKey, err)
	}
	consistent, forward := !plan.eventually, !plan.descending
	in := &dynamodb.QueryInput{
		TableName:                 &t.core.Name,
		KeyConditionExpression:    expr.KeyCondition(),
		ExpressionAttributeNames:  expr.Names(),
		ExpressionAttributeValues: expr.Values(),
		ConsistentRead:            &consistent,
		ScanIndexForward:          &forward,
	}
	if plan.pageSize > 0 {
		in.Limit = &plan.pageSize
	}
	return in, nil
}

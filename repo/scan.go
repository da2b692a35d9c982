package repo

import (
	"context"
	"fmt"
	"iter"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/goroutine"
)

// Scan iterates over all items of the table, or of an index, in no order, with
// consistent reads (of an index: eventually consistent ones). What is written
// meanwhile may come out or not. Stubs and tombstones are left out. An error ends
// the iteration, as of Query. One request per page of 1 MB, one read unit per 4 KB read: a scan
// reads, and costs, the whole table. ErrConfig if the client has no method Scan.
func (t *Table[T]) Scan(ctx context.Context, options ...QueryOption) iter.Seq2[T, error] {
	return each[T](func(yield func(any, error) bool) { t.m.scan(ctx, options, yield) })
}

func (t *mapping) scan(ctx context.Context, options []QueryOption, yield func(any, error) bool) {
	plan, in, err := t.scanInput(options)
	if err != nil {
		yield(nil, err)
		return
	}
	client, ok := t.client.(ddb.Scanner)
	if !ok {
		yield(nil, fmt.Errorf("%w: the client has no method Scan: give it that of *dynamodb.Client", ErrConfig))
		return
	}
	t.deliver(t.segments(ctx, client, plan, in), plan, yield)
}

func (t *mapping) scanInput(options []QueryOption) (*queryPlan, *dynamodb.ScanInput, error) {
	plan, err := planOf(options)
	if err != nil {
		return nil, nil, err
	}
	if plan.narrow != nil || plan.descending {
		return nil, nil, fmt.Errorf("%w: a scan has no order, and no sort key to narrow: use Query, or Filter", ErrConfig)
	}
	in := &dynamodb.ScanInput{TableName: &t.core.Name, ConsistentRead: aws.Bool(!plan.eventually && plan.index == nil)}
	if plan.index != nil {
		if _, _, err := t.keysOf(plan.index); err != nil {
			return nil, nil, err
		}
		in.IndexName, in.Select = &plan.index.name, types.SelectAllAttributes
	}
	t.filterType(plan)
	if plan.filter != nil {
		expr, err := t.core.Build(expression.NewBuilder().WithFilter(*plan.filter))
		if err != nil {
			return nil, nil, fmt.Errorf("%w: scan: %w", ErrConfig, err)
		}
		in.FilterExpression, in.ExpressionAttributeNames, in.ExpressionAttributeValues = expr.Filter(), expr.Names(), expr.Values()
	}
	if plan.pageSize > 0 {
		in.Limit = &plan.pageSize
	}
	return plan, in, nil
}

// segments iterates over the items of all parts of the table, which are read side
// by side.
func (t *mapping) segments(ctx context.Context, client ddb.Scanner, plan *queryPlan, in *dynamodb.ScanInput) iter.Seq2[ddb.Item, error] {
	if plan.segments <= 1 {
		return t.scanPages(ctx, client, *in)
	}
	return func(yield func(ddb.Item, error) bool) {
		type found struct {
			item ddb.Item
			err  error
		}
		ctx, stop := context.WithCancel(ctx)
		all := make(chan found)
		var readers sync.WaitGroup
		for i := range plan.segments {
			part := *in
			part.Segment, part.TotalSegments = aws.Int32(int32(i)), aws.Int32(int32(plan.segments))
			readers.Go(func() {
				give := func(item ddb.Item, err error) bool {
					select {
					case all <- found{item, err}:
						return true
					case <-ctx.Done(): // nobody reads on
						return false
					}
				}
				if ended := goroutine.Apart(func() { t.scanPages(ctx, client, part)(give) }); ended != nil {
					give(nil, fmt.Errorf("Scan on table %q: %w", t.core.Name, ended)) // else the rest of the part would be missing without a word
				}
			})
		}
		go func() { readers.Wait(); close(all) }()
		defer func() { // nobody reads on when the iteration is over
			stop()
			for range all {
			}
		}()
		for f := range all {
			if !yield(f.item, f.err) {
				return
			}
		}
		if err := ddb.CtxError(ctx); err != nil { // the readers have left without a word
			yield(nil, err)
		}
	}
}

// scanPages iterates over the items of all pages of a scan.
func (t *mapping) scanPages(ctx context.Context, client ddb.Scanner, in dynamodb.ScanInput) iter.Seq2[ddb.Item, error] {
	return t.core.Pages(ctx, "Scan", ddb.Options{}, ddb.Asked{}, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		in.ExclusiveStartKey = start
		return client.Scan(ctx, &in, o)
	})
}

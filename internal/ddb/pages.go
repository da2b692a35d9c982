package ddb

import (
	"context"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// Scanner is what reading a whole table needs of *dynamodb.Client.
type Scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Page sends one request for a page that begins after start, nil for the first. It
// returns the SDK's output, of a query or a scan.
type Page func(ctx context.Context, start Item, option func(*dynamodb.Options)) (out any, err error)

// Pages iterates over the items of all pages of a query or a scan. An error ends
// the iteration.
func (t *Table) Pages(ctx context.Context, op string, opt Options, page Page) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for start := Item(nil); ; {
			var items []Item
			var last Item
			opt.NoGrace = true
			err := t.send(ctx, op, opt, func(ctx context.Context, a *attempt) (Item, error) {
				out, err := page(ctx, start, a.options)
				if err != nil {
					return nil, err
				}
				switch out := out.(type) {
				case *dynamodb.QueryOutput:
					items, last = out.Items, out.LastEvaluatedKey
				case *dynamodb.ScanOutput:
					items, last = out.Items, out.LastEvaluatedKey
				}
				return nil, a.took(out)
			}).Err
			if err != nil {
				yield(nil, err)
				return
			}
			for _, item := range items {
				t.saw(item)
				if !yield(item, nil) {
					return
				}
			}
			if len(last) == 0 {
				return
			}
			start = last
		}
	}
}

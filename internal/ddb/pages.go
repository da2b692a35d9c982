package ddb

import (
	"context"
	"errors"
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Scanner is what reading a whole table needs of *dynamodb.Client.
type Scanner interface {
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Page sends one request for a page that begins after start, nil for the first. It
// returns the SDK's output, of a query or a scan.
type Page func(ctx context.Context, start Item, option func(*dynamodb.Options)) (out any, err error)

// Asked is what a query asks for; the zero value is a scan.
type Asked struct {
	Of         Item                 // the partition: all items have it
	Sort       string               // the attribute by whose values they come; "": in no order
	From, To   types.AttributeValue // those values are from this one to that one; nil: they are any
	Descending bool
	After      Item // where its first page begins; nil: with the first item
}

// Pages iterates over the items of all pages of a query or a scan. An error ends
// the iteration.
func (t *Table) Pages(ctx context.Context, op string, opt Options, asked Asked, page Page) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		opt.NoGrace = true
		asked, start := asked, Item(nil)
		for {
			items, last, err := t.page(ctx, op, opt, asked, start, page)
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
			start, asked.After = last, last
		}
	}
}

// page is one of them, and where the next one begins.
func (t *Table) page(ctx context.Context, op string, opt Options, asked Asked, start Item, page Page) (items []Item, last Item, err error) {
	err = t.send(ctx, op, opt, func(ctx context.Context, a *attempt) (Item, error) {
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
		if err := a.took(out); err != nil {
			return nil, err
		}
		return nil, t.another(&asked, items, last)
	}).Err
	return items, last, err
}

// another is the error of a page that is another request's: of another table, partition or
// range, or one that does not lie behind where it was to begin. The service's own pages are
// in order, so that the first of its items tells.
func (t *Table) another(asked *Asked, items []Item, last Item) error {
	for i, item := range items {
		if item[t.Partition] == nil || t.Sort != "" && item[t.Sort] == nil || !has(item, asked.Of) || !asked.within(item[asked.Sort]) || i == 0 && !asked.behind(item) {
			return &ReplyError{errAnother}
		}
	}
	if len(last) > 0 && (!has(last, asked.Of) || !asked.behind(last) || EqualItems(last, asked.After)) {
		return &ReplyError{errNotNext}
	}
	return nil
}

// within reports whether a value lies in the range.
func (a *Asked) within(v types.AttributeValue) bool {
	if a.From == nil {
		return true
	}
	low, ok := Compare(a.From, v)
	high, _ := Compare(v, a.To)
	return ok && low <= 0 && high <= 0
}

// behind reports whether an item, or the end of a page, can lie behind where the page begins.
// Engines may name no place in a partition.
func (a *Asked) behind(item Item) bool {
	from, to := a.After[a.Sort], item[a.Sort]
	if from == nil || to == nil {
		return true
	}
	order, ok := Compare(from, to)
	return ok && (order == 0 || order < 0 != a.Descending)
}

var errNotNext = errors.New("its page does not lie behind the one before: it is another request's")

package repo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/internal/ddb"
	"github.com/dynahold/dynahold/internal/stored"
)

// Query iterates over the items of a partition in the order of their sort
// keys, with consistent reads. Stubs and tombstones are left out. An error
// ends the iteration, also that of an item that cannot be read (*ItemError), but
// with [Unreadable]. One request per page, one read unit per 4 KB read.
func (t *Table[T]) Query(ctx context.Context, partition any, options ...QueryOption) iter.Seq2[T, error] {
	return each[T](func(yield func(any, error) bool) { t.m.query(ctx, partition, options, yield) })
}

// each hands out items to one who knows their type.
func each[T any](items iter.Seq2[any, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for item, err := range items {
			if !yield(as[T](item, err)) {
				return
			}
		}
	}
}

func (t *mapping) query(ctx context.Context, partition any, options []QueryOption, yield func(any, error) bool) {
	q, err := t.newQuery(partition, options)
	if err != nil {
		yield(nil, err)
		return
	}
	in := q.input
	if q.plan.limit > 0 && in.Limit == nil {
		in.Limit = aws.Int32(int32(min(q.plan.limit, maxPageSize)))
	}
	t.deliver(t.queryPages(ctx, q), q.plan, yield)
}

// deliver decodes items, and hands out those that readers see.
func (t *mapping) deliver(items iter.Seq2[ddb.Item, error], plan *queryPlan, yield func(any, error) bool) {
	n := 0
	for raw, err := range items {
		var item any
		shown := true
		if err == nil {
			item, shown, err = t.shown(raw, plan.unexpired)
		}
		if !shown || plan.passes(err) {
			continue
		}
		if !yield(item, err) || err != nil {
			return
		}
		if n++; n == plan.limit {
			return
		}
	}
}

// passes reports whether an error is that of an item past which the reading goes on,
// and reports the item.
func (p *queryPlan) passes(err error) bool {
	var item *ItemError
	if p.unreadable == nil || !errors.As(err, &item) {
		return false
	}
	p.unreadable(item)
	return true
}

// filterType lets DynamoDB leave out the items of other types.
func (t *mapping) filterType(plan *queryPlan) {
	if t.core.Type == "" {
		return
	}
	Filter(expression.NameNoDotSplit(t.core.Type).Equal(expression.Value(t.core.TypeName)))(plan)
}

// isOurs reports whether an item that was found, not asked for by its key, is one
// of the table's type.
func (t *mapping) isOurs(raw ddb.Item) bool {
	_, ours := t.bared(raw)
	return ours && t.core.CheckType(raw) == nil
}

// shown decodes an item that was found, unless readers are not to see it: because
// it is hidden, of another type, or, where only unexpired ones are asked for, expired.
func (t *mapping) shown(raw ddb.Item, unexpired bool) (item any, shown bool, err error) {
	if !t.isOurs(raw) {
		return nil, false, nil
	}
	if err = t.checkShape(raw); err != nil {
		return nil, true, err
	}
	if t.core.Hidden(raw) || unexpired && t.expired(raw) {
		return nil, false, nil
	}
	item, err = t.decode(raw)
	return item, true, err
}

// expired reports whether the time to live of an item is over: not what DynamoDB does not
// remove, which is more than five years old, such as the zero time of an item without one.
func (t *mapping) expired(raw ddb.Item) bool {
	n, ok := raw[t.core.Attr.TTL].(*types.AttributeValueMemberN)
	if !ok {
		return false
	}
	until, err := strconv.ParseFloat(n.Value, 64)
	now := t.core.Clock()
	return err == nil && until < float64(now.Unix()) && until >= float64(now.AddDate(-5, 0, 0).Unix())
}

// query is a query that can be sent.
type query struct {
	plan  *queryPlan
	input *dynamodb.QueryInput
	asked ddb.Asked
	keys  []string // the attributes by which a page begins
}

func (t *mapping) newQuery(partition any, options []QueryOption) (*query, error) {
	plan, err := planOf(options)
	if err != nil {
		return nil, err
	}
	if plan.segments > 0 {
		return nil, fmt.Errorf("%w: Segments is for Scan: a query reads one partition", ErrConfig)
	}
	pk, sk, err := t.keysOf(plan.index)
	if err != nil {
		return nil, err
	}
	which := "partition"
	if pk.name != t.schema.pk.name {
		which = "index's partition" // may be any value: the library's rows are not in the index by it
	}
	of, err := t.codec.encodePart(which, partition, pk, maxPartition)
	if err != nil {
		return nil, err
	}
	sorts, err := t.narrowed(plan, sk)
	if err != nil {
		return nil, err
	}
	cond := expression.Key(pk.name).Equal(expression.Value(of))
	if sorts.from != nil {
		cond = cond.And(sorts.cond)
	}
	builder := expression.NewBuilder().WithKeyCondition(cond)
	if pk.name != t.core.Type && sk.name != t.core.Type { // a filter cannot name a key
		t.filterType(plan)
	}
	if plan.filter != nil {
		builder = builder.WithFilter(*plan.filter)
	}
	expr, err := t.core.Build(builder)
	if err != nil {
		return nil, fmt.Errorf("%w: query: %w", ErrConfig, err)
	}
	for _, name := range stored.FirstNames(aws.ToString(expr.Filter()), expr.Names()) {
		if name == pk.name || name == sk.name {
			return nil, fmt.Errorf("%w: the filter names %q, a key of what is read, which DynamoDB takes in no filter of a query: use SortBetween or SortPrefix", ErrConfig, name)
		}
	}
	asked := ddb.Asked{Of: ddb.Item{pk.name: of}, Sort: sk.name, From: sorts.from, To: sorts.to, Descending: plan.descending}
	return &query{plan: plan, input: t.queryInput(plan, expr), asked: asked, keys: t.startKeys(pk, sk)}, nil
}

// narrowed is what a query reads of its partition.
func (t *mapping) narrowed(plan *queryPlan, sk field) (narrowing, error) {
	switch {
	case plan.narrow == nil: // the items of other types in the partition are not even read
		return beginning(sk, ""), nil
	case sk.name == "":
		return narrowing{}, fmt.Errorf("%w: the query narrows the sort key, but there is none", ErrKey)
	}
	return plan.narrow(t.codec, sk)
}

// queryInput is the request of a query.
func (t *mapping) queryInput(plan *queryPlan, expr expression.Expression) *dynamodb.QueryInput {
	input := &dynamodb.QueryInput{
		TableName:                 &t.core.Name,
		KeyConditionExpression:    expr.KeyCondition(),
		FilterExpression:          expr.Filter(),
		ExpressionAttributeNames:  expr.Names(),
		ExpressionAttributeValues: expr.Values(),
		ConsistentRead:            aws.Bool(!plan.eventually && plan.index == nil),
		ScanIndexForward:          aws.Bool(!plan.descending),
	}
	if plan.index != nil {
		input.IndexName, input.Select = &plan.index.name, types.SelectAllAttributes
	}
	if plan.pageSize > 0 {
		input.Limit = &plan.pageSize
	}
	return input
}

// keysOf returns the key attributes of the table, or of an index.
func (t *mapping) keysOf(in *index) (pk, sk field, err error) {
	if in == nil {
		return t.schema.pk, t.schema.sk, nil
	}
	if pk, err = t.schema.keyField(in, in.partition); err == nil && in.sort != "" {
		sk, err = t.schema.keyField(in, in.sort)
	}
	return pk, sk, err
}

// keyField is the field that maps a key attribute of an index.
func (s *schema) keyField(in *index, name string) (field, error) {
	for _, f := range s.fields {
		if f.name != name {
			continue
		}
		f, err := s.codec.checkKeyField(f)
		if err != nil {
			err = fmt.Errorf("%w: index %q: %w", ErrSchema, in.name, err)
		}
		return f, err
	}
	return field{}, fmt.Errorf("%w: index %q: no field maps its key attribute %q", ErrSchema, in.name, name)
}

// startKeys are the attributes that say where a page begins: the table's key, and
// the index's.
func (t *mapping) startKeys(more ...field) []string {
	var names []string
	for _, f := range append([]field{t.schema.pk, t.schema.sk}, more...) {
		if f.name != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// queryPages iterates over the items of all pages of a query. Each may have twice as many
// as the one before, unless their size was asked for: where few of many come out, they
// would take a request each.
func (t *mapping) queryPages(ctx context.Context, q *query) iter.Seq2[ddb.Item, error] {
	in := q.input
	first, asked := in.ExclusiveStartKey, q.asked
	asked.After = first
	return t.core.Pages(ctx, "Query", ddb.Options{}, asked, func(ctx context.Context, start ddb.Item, o func(*dynamodb.Options)) (any, error) {
		if in.ExclusiveStartKey = start; start == nil {
			in.ExclusiveStartKey = first
		} else if in.Limit != nil && q.plan.pageSize == 0 {
			in.Limit = aws.Int32(min(2**in.Limit, maxPageSize))
		}
		return t.client.Query(ctx, in, o)
	})
}

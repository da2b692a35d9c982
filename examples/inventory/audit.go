package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/report"
)

// The audit reads the tables with the plain SDK into types of its own and
// recomputes everything from the lines of the input. It shares nothing with the
// workers but the parsed lines. Which of two orders got the last piece depends
// on timing, so it takes from the tables which orders were accepted, and
// demands that all else follows.
type (
	auditStock struct {
		Product  string `dynamodbav:"product"`
		Left     int64  `dynamodbav:"left"`
		LockedBy string `dynamodbav:"lockedBy"`
	}
	auditOrder struct {
		Order    string `dynamodbav:"order"`
		Customer string `dynamodbav:"customer"`
		Lines    []line `dynamodbav:"lines"`
		Accepted bool   `dynamodbav:"accepted"`
	}
	auditCustomer struct {
		Customer  string `dynamodbav:"customer"`
		Orders    int64  `dynamodbav:"orders"`
		Spent     int64  `dynamodbav:"spent"`
		LastOrder string `dynamodbav:"lastOrder"`
	}
	auditStatus struct {
		Order   string `dynamodbav:"order"`
		Status  string `dynamodbav:"status"`
		Time    int64  `dynamodbav:"time"`
		Event   string `dynamodbav:"event"`
		Version int64  `dynamodbav:"version"`
	}
)

// audit compares the tables with the input.
func audit(ctx context.Context, s *shop, in *input) ([]report.Check, error) {
	stock, err := scan[auditStock](ctx, s.client, s.table(tableStock))
	if err != nil {
		return nil, err
	}
	customers, err := scan[auditCustomer](ctx, s.client, s.table(tableCustomers))
	if err != nil {
		return nil, err
	}
	orders, err := scan[auditOrder](ctx, s.client, s.table(tableOrders))
	if err != nil {
		return nil, err
	}
	states, err := scan[auditStatus](ctx, s.client, s.table(tableStatus))
	if err != nil {
		return nil, err
	}
	left := map[string]int64{}
	for i, p := range stock {
		left[p.Product] = p.Left
		if !s.alone {
			stock[i].LockedBy = "" // another process may be looking at a repetition
		}
	}
	return []report.Check{
		auditDecisions(in, orders),
		auditLeft(in, stock, orders),
		auditRejections(orders, left),
		auditTotals(in, customers, orders),
		auditStates(in, states),
	}, nil
}

// auditDecisions: every order of the input is decided, as it was placed, and
// none that is not in the input. The key makes it once.
func auditDecisions(in *input, orders []auditOrder) report.Check {
	c := report.Check{Name: "each order decided exactly once, none lost"}
	placed := map[string]event{}
	for _, e := range in.events {
		if e.Kind == kindOrder {
			placed[e.Order] = e
		}
	}
	c.Looked = len(placed)
	seen := map[string]bool{}
	for _, o := range orders {
		e, ok := placed[o.Order]
		c.Want(ok, "order %s is not in the input", o.Order)
		c.Want(!ok || o.Customer == e.Customer && slices.Equal(o.Lines, e.Lines),
			"order %s is not as it was placed", o.Order)
		seen[o.Order] = true
	}
	for id := range placed {
		c.Want(seen[id], "order %s was neither accepted nor rejected", id)
	}
	return c
}

// auditLeft: what was there less the lines of all accepted orders is what is
// left, and not below zero; nobody holds a lock any more. An order that took
// only some of its products, or some though it was rejected, is found here.
func auditLeft(in *input, stock []auditStock, orders []auditOrder) report.Check {
	c := report.Check{Name: "stock left = stock at first - lines of accepted orders, never below 0"}
	want := map[string]int64{}
	for _, e := range in.stock {
		want[e.Product] = e.Quantity
	}
	c.Looked = len(want)
	for _, o := range orders {
		for _, l := range o.Lines {
			if o.Accepted {
				want[l.Product] -= l.Quantity
			}
		}
	}
	for _, p := range stock {
		n, ok := want[p.Product]
		c.Want(ok, "product %s is not in the input", p.Product)
		c.Want(!ok || p.Left == n, "product %s has %d left, want %d", p.Product, p.Left, n)
		c.Want(p.Left >= 0, "product %s is oversold: %d left", p.Product, p.Left)
		c.Want(p.LockedBy == "", "product %s is still locked by %s", p.Product, p.LockedBy)
		delete(want, p.Product)
	}
	for id := range want {
		c.Want(false, "product %s has no stock item", id)
	}
	return c
}

// auditRejections: stock only shrinks, so a rejected order must ask for more
// of a product than is left at the end. Of which order came first nothing is
// stored: one that was rejected too early, for what others got, is not found here.
func auditRejections(orders []auditOrder, left map[string]int64) report.Check {
	c := report.Check{Name: "no order rejected that what is left would serve"}
	for _, o := range orders {
		if !o.Accepted {
			c.Looked++
			short := slices.ContainsFunc(o.Lines, func(l line) bool { return left[l.Product] < l.Quantity })
			c.Want(short, "order %s was rejected, but all that it wants is left: %+v", o.Order, o.Lines)
		}
	}
	return c
}

// auditTotals: a customer's totals are those of the accepted orders.
func auditTotals(in *input, customers []auditCustomer, orders []auditOrder) report.Check {
	c := report.Check{Name: "customers' totals = sums of their accepted orders"}
	accepted := map[string]bool{}
	for _, o := range orders {
		accepted[o.Order] = o.Accepted
	}
	want, last := map[string]auditCustomer{}, map[string]time.Time{}
	for _, e := range in.events {
		if e.Kind != kindOrder || !accepted[e.Order] {
			continue
		}
		delete(accepted, e.Order) // its repetitions do not count
		w := want[e.Customer]
		if w.Orders == 0 || e.Time.After(last[e.Customer]) || e.Time.Equal(last[e.Customer]) && e.Order > w.LastOrder {
			w.LastOrder, last[e.Customer] = e.Order, e.Time
		}
		want[e.Customer] = auditCustomer{e.Customer, w.Orders + 1, w.Spent + e.total(), w.LastOrder}
	}
	c.Looked = len(want)
	for _, got := range customers {
		w, ok := want[got.Customer]
		c.Want(ok, "customer %s has no accepted order", got.Customer)
		c.Want(!ok || got == w, "customer %s has %+v, want %+v", got.Customer, got, w)
		delete(want, got.Customer)
	}
	for id := range want {
		c.Want(false, "customer %s is missing", id)
	}
	return c
}

// auditStates: the state of an order is that of its latest event; of two at
// one time, the one with the greater id.
func auditStates(in *input, states []auditStatus) report.Check {
	c := report.Check{Name: "each order's status = its latest event"}
	want := map[string]event{}
	for _, e := range in.events {
		if e.Kind != kindStatus {
			continue
		}
		w, ok := want[e.Order]
		if !ok || e.Time.After(w.Time) || e.Time.Equal(w.Time) && e.Event > w.Event {
			want[e.Order] = e
		}
	}
	c.Looked = len(want)
	for _, got := range states {
		w, ok := want[got.Order]
		c.Want(ok, "the status of order %s is not in the input", got.Order)
		c.Want(!ok || got.Status == w.Status && got.Event == w.Event && got.Time == w.Time.UnixMilli(),
			"order %s is %q by event %s, want %q by event %s", got.Order, got.Status, got.Event, w.Status, w.Event)
		delete(want, got.Order)
	}
	for id := range want {
		c.Want(false, "the status of order %s is missing", id)
	}
	return c
}

// writesOfStatus is how many status events were ever applied: each counts the
// version of its item up by one.
func (s *shop) writesOfStatus(ctx context.Context) (int64, error) {
	states, err := scan[auditStatus](ctx, s.client, s.table(tableStatus))
	total := int64(0)
	for _, st := range states {
		total += st.Version
	}
	return total, err
}

// scan reads a whole table, consistently.
func scan[T any](ctx context.Context, client *dynamodb.Client, table string) ([]T, error) {
	var all []T
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("scanning table %s: %w", table, err)
		}
		var items []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &items); err != nil {
			return nil, fmt.Errorf("scanning table %s: %w", table, err)
		}
		all = append(all, items...)
	}
	return all, nil
}

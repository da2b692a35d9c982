package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/report"
)

// state is the tables, read with the plain SDK.
type state struct {
	products  []product
	customers []customer
	orders    []order
	locked    []string // items that somebody holds
}

// audit recomputes stock and money from the orders, and compares the orders with what
// the clients were told, and what the warehouse was.
func (d *stage) audit(ctx context.Context, all []*purchase) ([]report.Check, error) {
	var s state
	var notices []notice
	err1 := scan(ctx, d.client, d.tables+"products", &s.products, &s.locked)
	err2 := scan(ctx, d.client, d.tables+"customers", &s.customers, &s.locked)
	err3 := scan(ctx, d.client, d.tables+"orders", &s.orders, &s.locked)
	err4 := scan(ctx, d.client, d.tables+"notices", &notices, &s.locked)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	d.warehouse.mu.Lock()
	defer d.warehouse.mu.Unlock()
	return []report.Check{
		auditAnswers(s, all),
		auditStock(s),
		auditMoney(s, d.market.deposits),
		auditNotices(s, d.warehouse.came, notices),
		auditLocks(s),
	}, nil
}

// auditAnswers: there is an order for each that a client was told is placed, as it was
// told, and no other.
func auditAnswers(s state, all []*purchase) report.Check {
	c := report.Check{Name: "orders are those that clients were told of", Looked: len(all)}
	told := map[string]*purchase{}
	for _, p := range all {
		told[p.path()] = p
	}
	for _, o := range s.orders {
		p := told[o.path()]
		delete(told, o.path())
		if p == nil || p.status != http.StatusCreated {
			c.Want(false, "order %s was never answered", o.path())
			continue
		}
		o.Version = 0 // not the clients' affair
		c.Want(o.ID == p.order.ID && o.Customer == p.order.Customer && o.Status == p.order.Status && o.Total == p.order.Total &&
			slices.Equal(o.Lines, p.order.Lines) && o.is(order{Customer: p.customer, Lines: p.lines}) == nil,
			"order %s is %+v, the client was told %+v", o.path(), o, p.order)
	}
	for _, p := range all {
		if told[p.path()] != nil {
			c.Want(p.status == http.StatusConflict, "order %s is missing, its answer was %d", p.path(), p.status)
		}
	}
	return c
}

// auditStock: what was there less what was ordered is what is left.
func auditStock(s state) report.Check {
	c := report.Check{Name: "stock left = stock at first - orders, never below 0", Looked: products}
	want := map[string]int64{}
	for i := range products {
		want[productID(i)] = stock
	}
	for _, o := range s.orders {
		for _, l := range o.Lines {
			if o.Status == placed {
				want[l.SKU] -= l.Pieces
			}
		}
	}
	for _, p := range s.products {
		n, ok := want[p.SKU]
		c.Want(ok && p.Stock == n && n >= 0, "of %s %d are left, want %d", p.SKU, p.Stock, n)
		delete(want, p.SKU)
	}
	c.Want(len(want) == 0, "products are missing: %v", want)
	return c
}

// auditMoney: what customers had and paid in less what they ordered is what they have;
// totals are sums of their lines at the shop's prices.
func auditMoney(s state, deposits map[string]int64) report.Check {
	c := report.Check{Name: "money left = money at first + deposits - orders, never below 0", Looked: customers}
	want, prices := map[string]int64{}, map[string]int64{}
	for i := range customers {
		want[customerID(i)] = balance + deposits[customerID(i)]
	}
	for i := range products {
		prices[productID(i)] = price(i)
	}
	for _, o := range s.orders {
		sum := int64(0)
		for _, l := range o.Lines {
			sum += l.Pieces * prices[l.SKU]
		}
		c.Want(sum == o.Total, "order %s costs %d, its lines %d", o.path(), o.Total, sum)
		if o.Status == placed {
			want[o.Customer] -= sum
		}
	}
	for _, got := range s.customers {
		n, ok := want[got.ID]
		c.Want(ok && got.Balance == n && n >= 0, "%s has %d cents, want %d", got.ID, got.Balance, n)
		delete(want, got.ID)
	}
	c.Want(len(want) == 0, "customers are missing: %v", want)
	return c
}

// auditNotices: the warehouse knows of every order, and of every one that was
// cancelled; of nothing else. None is left in the outbox.
func auditNotices(s state, came map[string]int, left []notice) report.Check {
	c := report.Check{Name: "the warehouse was told of every order and cancellation"}
	want := map[string]bool{}
	for _, o := range s.orders {
		want[o.path()+"/"+placed] = true
		if o.Status == cancelled {
			want[o.path()+"/"+cancelled] = true
		}
	}
	c.Looked = len(want)
	for id := range came {
		c.Want(want[id], "notice %s came, of no such order", id)
		delete(want, id)
	}
	for id := range want {
		c.Want(false, "notice %s never came", id)
	}
	for _, n := range left {
		c.Want(false, "notice %s is left in the outbox", n.ID)
	}
	return c
}

// auditLocks: whoever was killed has left no lock behind that others still wait for.
func auditLocks(s state) report.Check {
	c := report.Check{Name: "nothing is locked", Looked: len(s.products) + len(s.customers) + len(s.orders)}
	for _, key := range s.locked {
		c.Want(false, "%s is locked", key)
	}
	return c
}

// scan reads a whole table, consistently.
func scan[T any](ctx context.Context, client *dynamodb.Client, table string, into *[]T, locked *[]string) error {
	pages := dynamodb.NewScanPaginator(client, &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("scanning table %s: %w", table, err)
		}
		for _, item := range page.Items {
			if item["lockedBy"] != nil {
				*locked = append(*locked, fmt.Sprintf("an item of %s", table))
			}
		}
		var items []T
		if err := attributevalue.UnmarshalListOfMaps(page.Items, &items); err != nil {
			return fmt.Errorf("scanning table %s: %w", table, err)
		}
		*into = append(*into, items...)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"time"

	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A product is wanted by many at once.
type product struct {
	SKU     string `dynamodbav:"sku" json:"sku" repo:"pk"`
	Price   int64  `dynamodbav:"price" json:"price"` // cents
	Stock   int64  `dynamodbav:"stock" json:"stock"`
	Version int64  `dynamodbav:"version" json:"-" repo:"version"`
}

// A customer pays in advance.
type customer struct {
	ID      string `dynamodbav:"id" json:"id" repo:"pk"`
	Balance int64  `dynamodbav:"balance" json:"balance"` // cents
	Version int64  `dynamodbav:"version" json:"-" repo:"version"`
}

// An order has the key of the request that placed it as its id: so it is placed once,
// and is found again when its customer asks again. A key belongs to its customer: two
// customers' orders with one key are two.
type order struct {
	Customer string `dynamodbav:"customer" json:"customer" repo:"pk"`
	ID       string `dynamodbav:"id" json:"id" repo:"sk"`
	Lines    []line `dynamodbav:"lines" json:"lines"`
	Total    int64  `dynamodbav:"total" json:"total"`   // cents
	Status   string `dynamodbav:"status" json:"status"` // placed or cancelled
	Version  int64  `dynamodbav:"version" json:"-" repo:"version"`
}

type line struct {
	SKU    string `dynamodbav:"sku" json:"sku"`
	Pieces int64  `dynamodbav:"pieces" json:"pieces"`
	Price  int64  `dynamodbav:"price" json:"price"` // cents for one piece, when it was ordered
}

const (
	placed    = "placed"
	cancelled = "cancelled"
)

// A notice tells the warehouse of an order. It is written in the order's transaction
// and deleted when the warehouse has it.
type notice struct {
	Box      string `dynamodbav:"box" json:"-" repo:"pk"` // one partition does for some hundred orders a second
	ID       string `dynamodbav:"id" json:"id" repo:"sk"`
	Customer string `dynamodbav:"customer" json:"customer"`
	Order    string `dynamodbav:"order" json:"order"`
	What     string `dynamodbav:"what" json:"what"` // placed or cancelled
}

const outbox = "outbox"

// shop is the tables, each with the strategy that suits it.
type shop struct {
	products  *optimistic.Repository[product]
	customers *optimistic.Repository[customer]
	orders    *optimistic.Repository[order]
	notices   *pessimistic.Repository[notice] // a lock, so that one server at a time sends it
}

// openShop makes the repositories; prefix begins the tables' names.
func openShop(client repo.Client, prefix string) (*shop, error) {
	products, err1 := repo.NewTable[product](client, prefix+"products", repo.TableConfig{})
	customers, err2 := repo.NewTable[customer](client, prefix+"customers", repo.TableConfig{})
	orders, err3 := repo.NewTable[order](client, prefix+"orders", repo.TableConfig{})
	notices, err4 := repo.NewTable[notice](client, prefix+"notices", repo.TableConfig{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	s := &shop{}
	s.products, err1 = optimistic.New(products, optimistic.Config{})
	s.customers, err2 = optimistic.New(customers, optimistic.Config{})
	s.orders, err3 = optimistic.New(orders, optimistic.Config{})
	// A server that dies while it sends keeps the others from that notice for a lease.
	// Whoever finds a notice locked goes on to the next one.
	s.notices, err4 = pessimistic.New(notices, pessimistic.Config{Lease: 2 * time.Second, ClockSkew: 50 * time.Millisecond, Wait: repo.Wait{Attempts: 1}})
	return s, errors.Join(err1, err2, err3, err4)
}

// ensureTables creates the tables.
func (s *shop) ensureTables(ctx context.Context) error {
	for _, table := range []interface{ EnsureTable(context.Context) error }{s.products.Table(), s.customers.Table(), s.orders.Table(), s.notices.Table()} {
		if err := table.EnsureTable(ctx); err != nil {
			return err
		}
	}
	return nil
}

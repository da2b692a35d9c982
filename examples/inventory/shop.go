package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// A stockItem is how much there is of a product. Open are the orders decided
// here whose order record may not be written yet, with the pieces that each
// took; 0 means refused.
type stockItem struct {
	Product string           `dynamodbav:"product" repo:"pk"`
	Left    int64            `dynamodbav:"left"`
	Open    map[string]int64 `dynamodbav:"open,omitempty"`
}

// A customer has totals of the accepted orders. Open are orders counted here
// whose order record may not be written yet.
type customer struct {
	ID        string   `dynamodbav:"customer" repo:"pk"`
	Orders    int64    `dynamodbav:"orders"`
	Spent     int64    `dynamodbav:"spent"`     // cents
	LastOrder string   `dynamodbav:"lastOrder"` // the latest by time, then id
	LastTime  int64    `dynamodbav:"lastTime"`  // Unix milliseconds
	Open      []string `dynamodbav:"open,stringset,omitempty"`
	Version   int64    `dynamodbav:"version" repo:"version"`
}

// An order is written once, when it is decided and counted: that it exists
// means that nothing is left to do for it.
type order struct {
	ID       string `dynamodbav:"order" repo:"pk"`
	Customer string `dynamodbav:"customer"`
	Lines    []line `dynamodbav:"lines"`
	Time     int64  `dynamodbav:"time"`
	Accepted bool   `dynamodbav:"accepted"`
	Version  int64  `dynamodbav:"version" repo:"version"`
}

// A status is the latest that payment, warehouse and carrier told of an order.
// It mirrors their events, whether the order was accepted or not.
type status struct {
	Order   string `dynamodbav:"order" repo:"pk"`
	Status  string `dynamodbav:"status"`
	Time    int64  `dynamodbav:"time" repo:"eventtime"` // Unix milliseconds
	Event   string `dynamodbav:"event" repo:"eventid"`
	Version int64  `dynamodbav:"version" repo:"version"` // counts the events that were applied
}

// shop is the four tables, each with its strategy.
type shop struct {
	prefix string
	where  string // which engine, in words
	alone  bool   // no other process works on the tables
	client *dynamodb.Client

	stock     *pessimistic.Repository[stockItem]
	customers *optimistic.Repository[customer]
	orders    *optimistic.Repository[order]
	status    *nolock.Repository[status]
	requests  counter

	inStock, inCustomers finished // ids to be dropped from Open, see orders.go
}

// The tables, as indexes of names and counts.
const (
	tableStock = iota
	tableCustomers
	tableOrders
	tableStatus
	tables
	transactions = tables // the count of requests that are for several tables
)

var tableNames = [tables]string{"stock", "customers", "orders", "status"}

func (s *shop) table(i int) string { return s.prefix + tableNames[i] }

// openShop creates the tables and the repositories.
func openShop(ctx context.Context, engine *localdb.Engine, opt options) (*shop, error) {
	s := &shop{prefix: opt.prefix, client: engine.Client(), where: "embedded engine", alone: !opt.resume}
	if !engine.Managed() {
		s.where = engine.Endpoint()
	}
	s.requests.prefix = s.prefix
	counted := engine.NewClient(s.requests.count) // one for all tables: a transaction is one request
	stock, err1 := repo.NewTable[stockItem](counted, s.table(tableStock), repo.TableConfig{})
	customers, err2 := repo.NewTable[customer](counted, s.table(tableCustomers), repo.TableConfig{})
	orders, err3 := repo.NewTable[order](counted, s.table(tableOrders), repo.TableConfig{})
	states, err4 := repo.NewTable[status](counted, s.table(tableStatus), repo.TableConfig{})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	s.stock, err1 = pessimistic.New(stock, pessimistic.Config{Lease: opt.lease})
	s.customers, err2 = optimistic.New(customers, optimistic.Config{})
	s.orders, err3 = optimistic.New(orders, optimistic.Config{})
	s.status, err4 = nolock.New(states, nolock.Config{Unit: time.Millisecond})
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if !opt.resume {
		if err := s.refuseExisting(ctx); err != nil {
			return nil, err
		}
	}
	err := together(ctx, stock.EnsureTable, customers.EnsureTable, orders.EnsureTable, states.EnsureTable)
	if err != nil {
		return nil, errors.Join(err, s.close(opt.resume || opt.keep))
	}
	s.requests.take() // the work counts, not the setting up
	return s, nil
}

// refuseExisting keeps the example's hands off tables that are somebody's.
func (s *shop) refuseExisting(ctx context.Context) error {
	for i := range tableNames {
		name := s.table(i)
		_, err := s.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
		if err == nil {
			return fmt.Errorf("table %s exists already: give another -prefix, or -resume to go on in it", name)
		}
		if !isNoTable(err) {
			return fmt.Errorf("table %s: %w", name, err)
		}
	}
	return nil
}

// close deletes the tables unless they are to be kept. It works after an
// interruption too.
func (s *shop) close(keep bool) error {
	if keep {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var errs []error
	for i := range tableNames {
		name := s.table(i)
		if _, err := s.client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &name}); err != nil && !isNoTable(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func isNoTable(err error) bool {
	var missing *types.ResourceNotFoundException
	return errors.As(err, &missing)
}

// together runs functions side by side and joins their errors.
func together(ctx context.Context, functions ...func(context.Context) error) error {
	errs := make([]error, len(functions))
	var wg sync.WaitGroup
	for i, f := range functions {
		wg.Go(func() { errs[i] = f(ctx) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

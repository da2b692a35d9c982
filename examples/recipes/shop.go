// Package recipes has the programs of docs/recipes.md: each is one thing that services on
// DynamoDB items ask for. Its tests run them.
package recipes

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

type (
	// Seat is taken by a customer, for a time or for good.
	Seat struct {
		ID       string `dynamodbav:"id" repo:"pk"`
		Customer string `dynamodbav:"customer,omitempty"`
		Paid     bool   `dynamodbav:"paid"`
		Release  string `dynamodbav:"release,omitempty"` // the job that gives it back
		Version  int64  `dynamodbav:"version" repo:"version"`
	}
	// Customer has an e-mail address that nobody else has.
	Customer struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Email   string `dynamodbav:"email" repo:"unique"`
		Seats   int    `dynamodbav:"seats"`
		Balance int    `dynamodbav:"balance"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	// Counter is the last number that was given out.
	Counter struct {
		ID      string `dynamodbav:"id" repo:"pk"`
		Last    int    `dynamodbav:"last"`
		Version int64  `dynamodbav:"version" repo:"version"`
	}
	// Invoice has a number.
	Invoice struct {
		Number   int    `dynamodbav:"number" repo:"pk"`
		Customer string `dynamodbav:"customer"`
		Version  int64  `dynamodbav:"version" repo:"version"`
	}
	// Work is what jobs are about.
	Work struct{ Seat, Customer, Tick string }
)

// Errors of the shop.
var (
	ErrTaken = errors.New("the seat is taken")
	ErrGone  = errors.New("the seat is held no more")
	ErrLimit = errors.New("four seats are enough")
)

const mostSeats = 4

// Shop is what all recipes are about.
type Shop struct {
	Seats     *optimistic.Repository[Seat]
	Customers *optimistic.Repository[Customer]
	Counters  *optimistic.Repository[Counter]
	Invoices  *optimistic.Repository[Invoice]
	Work      *jobs.Queue[Work]
	Steps     *once.Store
	Locks     *mutex.Locker
}

// Open opens the shop's tables, and makes those that are missing.
func Open(ctx context.Context, client *dynamodb.Client) (*Shop, error) {
	s := &Shop{}
	var err, errs error
	s.Seats, err = open[Seat](ctx, client, "seats")
	errs = errors.Join(errs, err)
	s.Customers, err = open[Customer](ctx, client, "customers")
	errs = errors.Join(errs, err)
	s.Counters, err = open[Counter](ctx, client, "counters")
	errs = errors.Join(errs, err)
	s.Invoices, err = open[Invoice](ctx, client, "invoices")
	errs = errors.Join(errs, err)
	s.Work, err = jobs.New[Work](client, "work", jobs.Config{})
	errs = errors.Join(errs, err)
	s.Steps, err = once.New(client, "steps", once.Config{})
	errs = errors.Join(errs, err)
	s.Locks, err = mutex.New(client, "locks", mutex.Config{Mode: mutex.FailOpen, Heartbeat: 10 * time.Second})
	if errs = errors.Join(errs, err); errs != nil {
		return nil, errs
	}
	return s, errors.Join(s.Work.EnsureTable(ctx), s.Steps.EnsureTable(ctx), s.Locks.EnsureTable(ctx))
}

func open[T any](ctx context.Context, client repo.Client, name string) (*optimistic.Repository[T], error) {
	table, err := repo.NewTable[T](client, name, repo.TableConfig{})
	if err != nil {
		return nil, err
	}
	if err := table.EnsureTable(ctx); err != nil {
		return nil, err
	}
	return optimistic.New(table, optimistic.Config{})
}

func key(id any) repo.Key { return repo.Key{Partition: id} }

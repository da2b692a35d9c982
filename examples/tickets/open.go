package main

import (
	"context"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/optimistic"
	"github.com/dynahold/dynahold/repo"
)

type shop struct {
	seats     *optimistic.Repository[seat]
	customers *optimistic.Repository[customer]
	orders    *optimistic.Repository[order]
	counters  *optimistic.Repository[counter]
	releases  *jobs.Queue[string] // of orders, by their ids
}

var tables = []string{"seats", "customers", "orders", "counters", "releases"}

func tableNames(prefix string) (all []string) {
	for _, name := range tables {
		all = append(all, prefix+name)
	}
	return all
}

// openShop opens the tables of a shop.
func openShop(client *dynamodb.Client, prefix string) (*shop, error) {
	s := &shop{}
	errs := []error{
		open(client, prefix+"seats", &s.seats),
		open(client, prefix+"customers", &s.customers),
		open(client, prefix+"orders", &s.orders),
		open(client, prefix+"counters", &s.counters),
	}
	releases, err := jobs.New[string](client, prefix+"releases", jobs.Config{
		Limit: 8, Lease: 2 * time.Second, Poll: 500 * time.Millisecond, // so that a demonstration is short
	})
	s.releases = releases
	return s, errors.Join(append(errs, err)...)
}

func open[T any](client *dynamodb.Client, name string, into **optimistic.Repository[T]) error {
	table, err := repo.NewTable[T](client, name, repo.TableConfig{})
	if err == nil {
		*into, err = optimistic.New(table, optimistic.Config{})
	}
	return err
}

func (s *shop) ensureTables(ctx context.Context) error {
	return errors.Join(
		s.seats.Table().EnsureTable(ctx), s.customers.Table().EnsureTable(ctx), s.orders.Table().EnsureTable(ctx),
		s.counters.Table().EnsureTable(ctx), s.releases.EnsureTable(ctx),
	)
}

func key(id string) repo.Key { return repo.Key{Partition: id} }

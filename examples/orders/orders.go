package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// place places an order: it takes the pieces from stock and the money from the
// customer, and leaves a notice for the warehouse. An order of the customer that is
// there already is returned as it is, if it is the one that is wanted.
//
// The order itself is the evidence that the key was used, for as long as it is there.
// txn.Once would do too, for an hour: it leaves the key on every item that is written,
// which the products that everybody buys would notice.
//
// All items are known beforehand, so that this takes two requests: one reads them, one
// writes them. Where another order was first, it runs again with what that has left.
func (s *shop) place(ctx context.Context, wanted order) (o order, repeated bool, err error) {
	err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		products, customers, orders, notices := s.products.In(tx), s.customers.In(tx), s.orders.In(tx), s.notices.In(tx)
		buyer, id := repo.Key{Partition: wanted.Customer}, wanted.key()
		if err := tx.Prefetch(ctx, s.products.Keys(wanted.skus()...), s.customers.Keys(buyer), s.orders.Keys(id)); err != nil {
			return err
		}
		o, err = orders.Get(ctx, id)
		if repeated = err == nil; repeated {
			return o.is(wanted)
		}
		if !errors.Is(err, repo.ErrNotFound) {
			return err
		}
		o = order{ID: wanted.ID, Customer: wanted.Customer, Status: placed}
		for _, l := range wanted.Lines {
			p, err := products.Update(ctx, repo.Key{Partition: l.SKU}, l.take)
			if err != nil {
				return err
			}
			l.Price = p.Price
			o.Lines = append(o.Lines, l)
			o.Total += l.Pieces * l.Price
		}
		if _, err := customers.Update(ctx, buyer, o.charge); err != nil {
			return err
		}
		if o, err = orders.Create(ctx, o); err != nil {
			return err
		}
		_, err = notices.Create(ctx, o.notice())
		return err
	})
	return o, repeated, err
}

// cancel gives back what a customer's order has taken. Once is enough: the order knows.
func (s *shop) cancel(ctx context.Context, id repo.Key) (o order, err error) {
	err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		products, customers, orders, notices := s.products.In(tx), s.customers.In(tx), s.orders.In(tx), s.notices.In(tx)
		o, err = orders.Get(ctx, id)
		if err != nil || o.Status == cancelled {
			return err
		}
		for _, l := range o.Lines {
			if _, err := products.Update(ctx, repo.Key{Partition: l.SKU}, l.restock); err != nil {
				return err
			}
		}
		if _, err := customers.Update(ctx, repo.Key{Partition: o.Customer}, o.refund); err != nil {
			return err
		}
		o, err = orders.Update(ctx, id, func(_ context.Context, o *order) error {
			o.Status = cancelled
			return nil
		})
		if err != nil {
			return err
		}
		_, err = notices.Create(ctx, o.notice())
		return err
	})
	return o, err
}

// deposit adds to a customer's money, once for each key: the customer's item remembers
// it for an hour, and by the fingerprint how much it was: another amount with the key is
// repo.ErrMismatch. It reads nothing, so it is one request.
func (s *shop) deposit(ctx context.Context, key, id string, cents int64) (c customer, repeated bool, err error) {
	once := s.customers.Once(key).WithFingerprint(strconv.AppendInt(nil, cents, 10))
	c, err = once.Apply(ctx, repo.Key{Partition: id}, expression.Add(expression.Name("balance"), expression.Value(cents)))
	return c, once.Repeated(), err
}

func (o order) key() repo.Key { return repo.Key{Partition: o.Customer, Sort: o.ID} }

func (o order) skus() (keys []repo.Key) {
	for _, l := range o.Lines {
		keys = append(keys, repo.Key{Partition: l.SKU})
	}
	return keys
}

// is tells whether an order is the one that is wanted: the prices are the shop's.
func (o order) is(wanted order) error {
	same := func(a, b line) bool { return a.SKU == b.SKU && a.Pieces == b.Pieces }
	if !slices.EqualFunc(o.Lines, wanted.Lines, same) {
		return errReused()
	}
	return nil
}

// path names an order among all: no customer's id and key make that of another.
func (o order) path() string { return url.PathEscape(o.Customer) + "/" + url.PathEscape(o.ID) }

func (o order) notice() notice {
	return notice{Box: outbox, ID: o.path() + "/" + o.Status, Customer: o.Customer, Order: o.ID, What: o.Status}
}

func (o order) charge(_ context.Context, c *customer) error {
	if c.Balance < o.Total {
		return refuse(http.StatusConflict, "not enough money: %d of %d cents", c.Balance, o.Total)
	}
	c.Balance -= o.Total
	return nil
}

func (o order) refund(_ context.Context, c *customer) error {
	c.Balance += o.Total
	return nil
}

func (l line) take(_ context.Context, p *product) error {
	if p.Stock < l.Pieces {
		return refuse(http.StatusConflict, "sold out: %d of %d pieces of %s", p.Stock, l.Pieces, l.SKU)
	}
	p.Stock -= l.Pieces
	return nil
}

func (l line) restock(_ context.Context, p *product) error {
	p.Stock += l.Pieces
	return nil
}

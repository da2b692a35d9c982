package main

import (
	"context"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/txn"
)

// asAWhole handles an order of several products: they, the customer and the
// order record are written by one transaction, or nothing is. So there are no
// steps between which a process can be killed, and no notes for its successor:
// that the order record exists means that everything is done.
//
// All items are named beforehand. The products are locked in the order that all
// transactions share, then the customer and the order are read by one request,
// and one request writes all.
//
// A rejected order takes nothing of what there is either. Its transaction writes
// the record alone, at a moment when the stock is as it was read.
func (s *shop) asAWhole(ctx context.Context, e event) (accepted bool, err error) {
	buyer, id := repo.Key{Partition: e.Customer}, repo.Key{Partition: e.Order}
	var wanted []repo.Key
	for _, l := range e.Lines {
		wanted = append(wanted, repo.Key{Partition: l.Product})
	}
	err = txn.Run(ctx, func(ctx context.Context, tx *txn.Tx) error {
		stock, customers, orders := s.stock.In(tx), s.customers.In(tx), s.orders.In(tx)
		if err := tx.Prefetch(ctx, s.stock.Keys(wanted...), s.customers.Keys(buyer), s.orders.Keys(id)); err != nil {
			return err
		}
		if err := unfinished(ctx, orders, e.Order); err != nil {
			return err
		}
		accepted = true
		for i, l := range e.Lines {
			item, err := stock.Get(ctx, wanted[i])
			if err != nil {
				return err
			}
			accepted = accepted && item.Left >= l.Quantity
		}
		if accepted {
			for i, l := range e.Lines {
				if _, err := stock.Update(ctx, wanted[i], l.take); err != nil {
					return err
				}
			}
			if _, err := customers.Upsert(ctx, buyer, e.addTo); err != nil {
				return err
			}
		}
		_, err := orders.Create(ctx, e.decided(accepted))
		return err
	})
	return accepted, err
}

// take takes the pieces of a line, which are there.
func (l line) take(_ context.Context, item *stockItem) error {
	item.Left -= l.Quantity
	return nil
}

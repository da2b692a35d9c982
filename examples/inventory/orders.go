package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/dynahold/dynahold/repo"
)

// How an order of one product is handled without a transaction, and why that
// stays right when the process is killed between any two steps, and when the
// queue delivers the message again, or twice at once:
//
//  1. stock:    decide, and note the decision under the order's id in Open, in
//               the same commit that takes the pieces.
//  2. customer: if accepted, add to the totals, and note the id in Open, in the
//               same write.
//  3. order:    create the order record. Once it exists nothing is left to do.
//  4. Later, when the stock item or the customer is changed anyway, the ids of
//               finished orders are dropped from Open.
//
// Steps 1 and 2 find their own earlier work in Open and do not repeat it; step
// 3 is a Create. An id that is not in Open is either new or dropped, and dropped
// means that the order record exists. So both steps look for that record after
// they read the item and before they write it: nobody can finish and drop the
// order in between, because dropping it changes the item, which is locked
// (stock) or would make the write fail (customer, whose version would differ).
// That read keeps the items small for ever. To remember all ids on the item
// instead would save the read, until a hot item is full.
//
// Rejected: to create the order record first. It would tell the next worker
// that somebody began, not how far he came.
//
// A process that dies between steps 3 and 4 leaves an id in Open. It does no
// harm but takes its few bytes for good.

// errFinished ends a step of an order that somebody else finished meanwhile.
var errFinished = errors.New("the order is finished already")

// order handles an order: of one product in steps, of several as a whole.
func (s *shop) order(ctx context.Context, e event, t *tally) error {
	handle := s.inSteps
	if len(e.Lines) > 1 {
		handle = s.asAWhole
	}
	accepted, err := handle(ctx, e)
	switch {
	case errors.Is(err, errFinished), errors.Is(err, repo.ErrExists):
		t.duplicates.Add(1)
		return nil
	case err != nil:
		return err
	case accepted:
		t.accepted.Add(1)
	default:
		t.rejected.Add(1)
	}
	return nil
}

// inSteps handles an order of one product.
func (s *shop) inSteps(ctx context.Context, e event) (accepted bool, err error) {
	accepted, err = s.decide(ctx, e)
	if err == nil && accepted {
		err = s.count(ctx, e)
	}
	if err == nil {
		_, err = s.orders.Create(ctx, e.decided(accepted))
	}
	if err != nil {
		return false, err
	}
	s.inStock.add(e.Order)
	if accepted {
		s.inCustomers.add(e.Order)
	}
	return accepted, nil
}

// decided is the record of an order.
func (e event) decided(accepted bool) order {
	return order{ID: e.Order, Customer: e.Customer, Lines: e.Lines, Time: e.Time.UnixMilli(), Accepted: accepted}
}

// decide is step 1.
func (s *shop) decide(ctx context.Context, e event) (accepted bool, err error) {
	var dropped []string
	wanted := e.Lines[0]
	_, err = s.stock.Update(ctx, repo.Key{Partition: wanted.Product}, func(ctx context.Context, item *stockItem) error {
		taken, decided := item.Open[e.Order]
		if decided {
			accepted = taken > 0
			return nil
		}
		if err := unfinished(ctx, s.orders, e.Order); err != nil {
			return err
		}
		if item.Open == nil {
			item.Open = map[string]int64{}
		}
		for id := range item.Open {
			if s.inStock.has(id) {
				delete(item.Open, id)
				dropped = append(dropped, id)
			}
		}
		if accepted = item.Left >= wanted.Quantity; accepted {
			item.Left -= wanted.Quantity
			item.Open[e.Order] = wanted.Quantity
		} else {
			item.Open[e.Order] = 0
		}
		return nil
	})
	if err == nil {
		s.inStock.remove(dropped)
	}
	return accepted, err
}

// count is step 2. Its change may run several times, each time on a fresh item.
func (s *shop) count(ctx context.Context, e event) error {
	var dropped []string
	_, err := s.customers.Upsert(ctx, repo.Key{Partition: e.Customer}, func(ctx context.Context, c *customer) error {
		dropped = nil
		if slices.Contains(c.Open, e.Order) {
			return nil
		}
		if err := unfinished(ctx, s.orders, e.Order); err != nil {
			return err
		}
		c.Open = slices.DeleteFunc(c.Open, func(id string) bool {
			if s.inCustomers.has(id) {
				dropped = append(dropped, id)
				return true
			}
			return false
		})
		c.Open = append(c.Open, e.Order)
		return e.addTo(ctx, c)
	})
	if err == nil {
		s.inCustomers.remove(dropped)
	}
	return err
}

// addTo counts an accepted order.
func (e event) addTo(_ context.Context, c *customer) error {
	c.Orders++
	c.Spent += e.total()
	if at := e.Time.UnixMilli(); c.Orders == 1 || at > c.LastTime || at == c.LastTime && e.Order > c.LastOrder {
		c.LastOrder, c.LastTime = e.Order, at
	}
	return nil
}

// unfinished returns nil if there is no order record.
func unfinished(ctx context.Context, orders repo.Repository[order], id string) error {
	switch _, err := orders.Get(ctx, repo.Key{Partition: id}); {
	case err == nil:
		return errFinished
	case errors.Is(err, repo.ErrNotFound):
		return nil
	default:
		return err
	}
}

// finished are ids of orders that this process has finished and that are still
// in the Open of an item.
type finished struct{ ids sync.Map }

func (f *finished) add(id string) { f.ids.Store(id, nil) }

func (f *finished) has(id string) bool {
	_, ok := f.ids.Load(id)
	return ok
}

func (f *finished) remove(ids []string) {
	for _, id := range ids {
		f.ids.Delete(id)
	}
}

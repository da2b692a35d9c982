package main

import (
	"context"
	"errors"
	"iter"

	"github.com/dynahold/dynahold/examples/internal/report"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/unique"
)

// state is what the tables have.
type state struct {
	seats     map[string]seat
	customers map[string]customer
	orders    map[string]order
	last      int // number of an invoice
	claims    []unique.Finding
	releases  []jobs.Tally
}

// audit compares the tables with each other, and with what customers were told.
func (d *stage) audit(ctx context.Context) ([]report.Check, error) {
	s, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	return checks(s, d.guests), nil
}

func checks(s state, guests []*visitor) []report.Check {
	return []report.Check{auditSeats(s), auditCustomers(s, guests), auditInvoices(s), auditOrders(s, guests), auditReleases(s)}
}

func (d *stage) read(ctx context.Context) (s state, err error) {
	var errs [5]error
	s.seats, errs[0] = all(d.shop.seats.Table().Scan(ctx), func(x seat) string { return x.ID })
	s.customers, errs[1] = all(d.shop.customers.Table().Scan(ctx), func(c customer) string { return c.ID })
	s.orders, errs[2] = all(d.shop.orders.Table().Scan(ctx), func(o order) string { return o.ID })
	last, err := d.shop.counters.Get(ctx, key("invoices"))
	if s.last = last.Last; !errors.Is(err, repo.ErrNotFound) {
		errs[3] = err
	}
	for r, err := range d.shop.releases.Audit(ctx) {
		errs[4] = errors.Join(errs[4], err)
		s.releases = append(s.releases, r)
	}
	for f, err := range unique.In(d.shop.customers.Table().KeyTable).Check(ctx) {
		if err != nil {
			return s, err
		}
		s.claims = append(s.claims, f)
	}
	return s, errors.Join(errs[:]...)
}

func all[T any](items iter.Seq2[T, error], id func(T) string) (map[string]T, error) {
	found := map[string]T{}
	for x, err := range items {
		if err != nil {
			return nil, err
		}
		found[id(x)] = x
	}
	return found, nil
}

// auditSeats: a seat belongs to the order that says so, and to no other.
func auditSeats(s state) report.Check {
	c := report.Check{Name: "no seat is sold twice, or lost", Looked: len(s.seats)}
	owner := map[string]string{}
	for _, o := range s.orders {
		c.Want(o.State == paid || o.State == expired, "order %s is still %s", o.ID, o.State)
		for _, id := range o.Seats {
			if o.State == expired {
				continue
			}
			c.Want(owner[id] == "", "seat %s is that of %s and of %s", id, owner[id], o.ID)
			owner[id] = o.ID
		}
	}
	for id, x := range s.seats {
		c.Want(x.Order == owner[id], "seat %s has the order %q, by the orders it is %q", id, x.Order, owner[id])
	}
	return c
}

// auditCustomers: each has its address for itself, and as many seats as its orders.
func auditCustomers(s state, guests []*visitor) report.Check {
	c := report.Check{Name: "an address is one customer's, who has four seats at most", Looked: len(s.customers)}
	owned, addresses := map[string]int{}, map[string]string{}
	for _, o := range s.orders {
		if o.State == paid {
			owned[o.Customer] += len(o.Seats)
		}
	}
	for id, x := range s.customers {
		c.Want(addresses[x.Email] == "", "%s is that of %s and of %s", x.Email, addresses[x.Email], id)
		addresses[x.Email] = id
		c.Want(x.Seats == owned[id] && x.Seats <= mostSeats, "customer %s counts %d seats, has %d", id, x.Seats, owned[id])
	}
	for _, v := range guests {
		c.Want(s.customers[v.id].Email == v.email, "customer %s was told %s, has %q", v.id, v.email, s.customers[v.id].Email)
	}
	c.Want(len(s.customers) == len(guests), "%d customers, and %d were there", len(s.customers), len(guests))
	for _, f := range s.claims {
		c.Want(false, "the claim of %s %v is %s", f.Field, f.Key, f.State)
	}
	return c
}

// auditInvoices: they are numbered from 1, without gaps.
func auditInvoices(s state) report.Check {
	c := report.Check{Name: "invoices have numbers without gaps", Looked: s.last}
	by := map[int]string{}
	for _, o := range s.orders {
		c.Want((o.Invoice > 0) == (o.State == paid), "order %s is %s, with the invoice %d", o.ID, o.State, o.Invoice)
		if o.Invoice > 0 {
			c.Want(by[o.Invoice] == "", "invoice %d is that of %s and of %s", o.Invoice, by[o.Invoice], o.ID)
			by[o.Invoice] = o.ID
		}
	}
	for n := 1; n <= s.last; n++ {
		c.Want(by[n] != "", "there is no invoice %d", n)
	}
	c.Want(len(by) == s.last, "%d invoices, the last number is %d", len(by), s.last)
	return c
}

// auditOrders: what customers were told is what there is.
func auditOrders(s state, guests []*visitor) report.Check {
	c := report.Check{Name: "orders are as customers were told"}
	for _, v := range guests {
		for _, w := range v.wishes {
			c.Looked++
			o, made := s.orders[w.order.ID]
			want := expired
			if w.invoice > 0 {
				want = paid
			}
			c.Want(made == (w.refused == ""), "order %s: refused %q, in the table: %v", w.order.ID, w.refused, made)
			c.Want(!made || o.State == want && o.Invoice == w.invoice, "order %s is %s with invoice %d, its customer was told %d", o.ID, o.State, o.Invoice, w.invoice)
		}
	}
	c.Want(len(s.orders) <= c.Looked, "%d orders, and %d were wanted", len(s.orders), c.Looked)
	return c
}

// auditReleases: every job is done or cancelled, and counted so.
func auditReleases(s state) report.Check {
	c := report.Check{Name: "no release is left, or counted that is not", Looked: len(s.releases)}
	for _, r := range s.releases {
		c.Want(r.OK() && r.Queued+r.Running+r.Dead == 0, "%s: %d wait, %d run, %d are dead", r, r.Queued, r.Running, r.Dead)
	}
	return c
}

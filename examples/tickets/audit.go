package main

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/repo"
)

// A check is one statement about the tables: how many things it looked at, and which of
// them it found wrong.
type check struct {
	name   string
	looked int
	faults []string
}

func (c *check) want(ok bool, format string, args ...any) {
	if !ok {
		c.faults = append(c.faults, fmt.Sprintf(format, args...))
	}
}

// state is what the tables have.
type state struct {
	seats     map[string]seat
	customers map[string]customer
	orders    map[string]order
	last      int // number of an invoice
	claims    []repo.ClaimFinding
	releases  []jobs.Tally
}

// audit compares the tables with each other, and with what customers were told.
func (d *stage) audit(ctx context.Context) ([]check, error) {
	s, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	return checks(s, d.guests), nil
}

func checks(s state, guests []*visitor) []check {
	return []check{auditSeats(s), auditCustomers(s, guests), auditInvoices(s), auditOrders(s, guests), auditReleases(s)}
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
	for f, err := range d.shop.customers.Table().Claims().Check(ctx) {
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
func auditSeats(s state) check {
	c := check{name: "no seat is sold twice, or lost", looked: len(s.seats)}
	owner := map[string]string{}
	for _, o := range s.orders {
		c.want(o.State == paid || o.State == expired, "order %s is still %s", o.ID, o.State)
		for _, id := range o.Seats {
			if o.State == expired {
				continue
			}
			c.want(owner[id] == "", "seat %s is that of %s and of %s", id, owner[id], o.ID)
			owner[id] = o.ID
		}
	}
	for id, x := range s.seats {
		c.want(x.Order == owner[id], "seat %s has the order %q, by the orders it is %q", id, x.Order, owner[id])
	}
	return c
}

// auditCustomers: each has its address for itself, and as many seats as its orders.
func auditCustomers(s state, guests []*visitor) check {
	c := check{name: "an address is one customer's, who has four seats at most", looked: len(s.customers)}
	owned, addresses := map[string]int{}, map[string]string{}
	for _, o := range s.orders {
		if o.State == paid {
			owned[o.Customer] += len(o.Seats)
		}
	}
	for id, x := range s.customers {
		c.want(addresses[x.Email] == "", "%s is that of %s and of %s", x.Email, addresses[x.Email], id)
		addresses[x.Email] = id
		c.want(x.Seats == owned[id] && x.Seats <= mostSeats, "customer %s counts %d seats, has %d", id, x.Seats, owned[id])
	}
	for _, v := range guests {
		c.want(s.customers[v.id].Email == v.email, "customer %s was told %s, has %q", v.id, v.email, s.customers[v.id].Email)
	}
	c.want(len(s.customers) == len(guests), "%d customers, and %d were there", len(s.customers), len(guests))
	for _, f := range s.claims {
		c.want(false, "the claim of %s %v is %s", f.Field, f.Key, f.State)
	}
	return c
}

// auditInvoices: they are numbered from 1, without gaps.
func auditInvoices(s state) check {
	c := check{name: "invoices have numbers without gaps", looked: s.last}
	by := map[int]string{}
	for _, o := range s.orders {
		c.want((o.Invoice > 0) == (o.State == paid), "order %s is %s, with the invoice %d", o.ID, o.State, o.Invoice)
		if o.Invoice > 0 {
			c.want(by[o.Invoice] == "", "invoice %d is that of %s and of %s", o.Invoice, by[o.Invoice], o.ID)
			by[o.Invoice] = o.ID
		}
	}
	for n := 1; n <= s.last; n++ {
		c.want(by[n] != "", "there is no invoice %d", n)
	}
	c.want(len(by) == s.last, "%d invoices, the last number is %d", len(by), s.last)
	return c
}

// auditOrders: what customers were told is what there is.
func auditOrders(s state, guests []*visitor) check {
	c := check{name: "orders are as customers were told"}
	for _, v := range guests {
		for _, w := range v.wishes {
			c.looked++
			o, made := s.orders[w.order.ID]
			want := expired
			if w.invoice > 0 {
				want = paid
			}
			c.want(made == (w.refused == ""), "order %s: refused %q, in the table: %v", w.order.ID, w.refused, made)
			c.want(!made || o.State == want && o.Invoice == w.invoice, "order %s is %s with invoice %d, its customer was told %d", o.ID, o.State, o.Invoice, w.invoice)
		}
	}
	c.want(len(s.orders) <= c.looked, "%d orders, and %d were wanted", len(s.orders), c.looked)
	return c
}

// auditReleases: every job is done or cancelled, and counted so.
func auditReleases(s state) check {
	c := check{name: "no release is left, or counted that is not", looked: len(s.releases)}
	for _, r := range s.releases {
		c.want(r.OK() && r.Queued+r.Running+r.Dead == 0, "%s: %d wait, %d run, %d are dead", r, r.Queued, r.Running, r.Dead)
	}
	return c
}

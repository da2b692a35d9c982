package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/unique"
)

// TestMain makes the test binary a server when a crew starts it.
func TestMain(m *testing.M) {
	if !crew.IsMember() {
		os.Exit(m.Run())
	}
	crew.Main(run)
}

func TestAllIsRightWhenServersAreKilled(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"-customers", "30", "-kills", "6"}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{"30 customers at 3 servers, 6 kills", "no seat is sold twice, or lost (60)", "customers were told (120)", "no release is left"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-servers", "0"}, {"-customers", "1"}, {"-kills", "-1"}, {"-kills", "61"}, {"-hold", "0s"}, {"-nonsense"}, {"more"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, errs.String())
		}
	}
}

// What a shop needs of its own is short.
func TestTheShopIsShort(t *testing.T) {
	code, err := os.ReadFile("shop.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(code)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	if lines > 120 {
		t.Errorf("shop.go has %d lines of code, of which more than 120 are too many", lines)
	}
}

// opened is a shop with tables, and two customers who want five orders.
func opened(t *testing.T) *stage {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	d := &stage{settings: settings{customers: 2}}
	if d.shop, err = openShop(engine.Client(), "tickets-"); err == nil {
		err = d.fill(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// visited is what the tables have after two customers were there, who paid two of three
// orders, and what they were told.
func visited(t *testing.T, d *stage) (state, []*visitor) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	guests := []*visitor{{id: "ann", email: "ann@example.org"}, {id: "bob", email: "bob@example.org"}}
	is := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range guests {
		is(d.shop.register(ctx, v.id, v.email))
		w := &wish{order: order{ID: v.id + "-1", Customer: v.id, Seats: []string{seatID(i)}}}
		v.wishes = append(v.wishes, w)
		is(d.shop.hold(ctx, w.order, d.hold))
		o, err := d.shop.pay(ctx, w.order.ID)
		is(err)
		w.invoice = o.Invoice
	}
	w := &wish{order: order{ID: "ann-2", Customer: "ann", Seats: []string{seatID(2), seatID(3)}}}
	guests[0].wishes = append(guests[0].wishes, w)
	is(d.shop.hold(ctx, w.order, 0))
	ended := make(chan error, 1)
	go func() { ended <- d.shop.releases.Run(ctx, d.shop.giveBack) }()
	is(d.released(ctx))
	cancel()
	is(<-ended)
	s, err := d.read(t.Context())
	is(err)
	return s, guests
}

// The audit must see each thing that the shop is there to prevent.
func TestTheAuditFindsWhatIsWrong(t *testing.T) {
	d := opened(t)
	d.hold = patience
	good, guests := visited(t, d)
	for _, c := range checks(good, guests) {
		if len(c.Faults) > 0 || c.Looked == 0 {
			t.Fatalf("%s: looked at %d, found %v", c.Name, c.Looked, c.Faults)
		}
	}
	change := func(id string, with func(*order)) func(*state) {
		return func(s *state) {
			o := s.orders[id]
			o.Seats = slices.Clone(o.Seats)
			with(&o)
			s.orders[id] = o
		}
	}
	for says, spoil := range map[string]func(*state){
		"seat seat-001 is that of": change("bob-1", func(o *order) { o.Seats[0] = seatID(0) }),
		"ann-2 is still held":      change("ann-2", func(o *order) { o.State = held }),
		`has the order "ann-2"`:    func(s *state) { s.seats[seatID(2)] = seat{ID: seatID(2), Order: "ann-2"} },
		"ann@example.org is that of": func(s *state) {
			s.customers["bob"] = customer{ID: "bob", Email: "ann@example.org", Seats: 1}
		},
		"counts 3 seats, has 1": func(s *state) { s.customers["ann"] = customer{ID: "ann", Email: "ann@example.org", Seats: 3} },
		"counts 5 seats, has 5": func(s *state) {
			s.customers["ann"] = customer{ID: "ann", Email: "ann@example.org", Seats: 5}
			change("ann-1", func(o *order) { o.Seats = []string{"1", "2", "3", "4", "5"} })(s)
		},
		"1 customers, and 2":        func(s *state) { delete(s.customers, "bob") },
		"there is no invoice 2":     change("bob-1", func(o *order) { o.Invoice = 3 }),
		"invoice 1 is that of":      change("bob-1", func(o *order) { o.Invoice = 1 }),
		"the last number is 3":      func(s *state) { s.last = 3 },
		"expired, with the invoice": change("ann-2", func(o *order) { o.Invoice = 3 }),
		"its customer was told 2":   change("bob-1", func(o *order) { o.State, o.Invoice = expired, 0 }),
		"in the table: false":       func(s *state) { delete(s.orders, "bob-1") },
		"the claim of email": func(s *state) {
			s.claims = []unique.Finding{{Claim: unique.Claim{Field: "email"}, State: unique.Missing}}
		},
		"1 wait, 0 run, 0 are dead": func(s *state) { s.releases = []jobs.Tally{{Resource: jobs.Resource{Queued: 1}}} },
	} {
		s := good
		s.seats, s.customers, s.orders = maps.Clone(good.seats), maps.Clone(good.customers), maps.Clone(good.orders)
		spoil(&s)
		found := ""
		for _, c := range checks(s, guests) {
			found += strings.Join(c.Faults, "\n") + "\n"
		}
		if !strings.Contains(found, says) {
			t.Errorf("%q is not found, but\n%s", says, found)
		}
	}
}

// TestAnEndedServerEndsTheRun: only who was killed may end.
func TestAnEndedServerEndsTheRun(t *testing.T) {
	f := newFleet(1, func(ctx context.Context, name string) (*crew.Crew[event], error) {
		return crew.Start[event](ctx, crew.Config{Prefix: name, Size: 1, Args: func(string) []string { return []string{"-nonsense"} }})
	})
	if err := f.keep(t.Context(), 0); err == nil || !strings.Contains(err.Error(), "flag provided but not defined") {
		t.Errorf("%v", err)
	}
}

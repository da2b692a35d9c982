package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/examples/internal/report"
	"github.com/dynahold/dynahold/localdb"
)

// atOnce is how many customers are in the shop at a time.
const atOnce = 16

// stage is a run.
type stage struct {
	settings
	shop   *shop
	visits *traffic
	fleet  *fleet
	guests []*visitor
}

// demonstrate lets customers visit the shop while servers are killed, and audits what came of it.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+time.Duration(s.customers)*100*time.Millisecond)
	defer cancel()
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	s.tables = "dynahold-tickets-" + rand.Text()[:8] + "-"
	d := &stage{settings: s, guests: visitors(s.customers, 1)}
	if d.shop, err = openShop(engine.Client(), s.tables); err != nil {
		return err
	}
	defer crew.Drop(ctx, "tickets", errs, engine.Client(), tableNames(s.tables)...)
	if err := d.fill(ctx); err != nil {
		return err
	}
	d.fleet = newFleet(s.servers, func(ctx context.Context, name string) (*crew.Crew[event], error) {
		return crew.Start[event](ctx, crew.Config{Prefix: name, Size: 1, Endpoint: engine.Endpoint(), Grace: 2 * patience, Args: func(name string) []string {
			return []string{"-server", name, "-tables", s.tables, "-hold", s.hold.String()}
		}})
	})
	d.visits = &traffic{client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}, address: d.fleet.address}
	began := time.Now()
	if err := d.run(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	checks, err := d.audit(ctx)
	if err != nil {
		return err
	}
	return d.report(out, took, checks)
}

// fill makes the tables and the seats.
func (d *stage) fill(ctx context.Context) error {
	if err := d.shop.ensureTables(ctx); err != nil {
		return err
	}
	for i := range seats(d.customers) {
		if _, err := d.shop.seats.Create(ctx, seat{ID: seatID(i)}); err != nil {
			return err
		}
	}
	return nil
}

// run keeps the servers at work until all customers have been there and no seat is held
// for a time any more.
func (d *stage) run(ctx context.Context) error {
	ctx, fail := context.WithCancelCause(ctx)
	serving, stop := context.WithCancel(ctx)
	var keepers sync.WaitGroup
	for n := range d.servers {
		keepers.Go(func() {
			if err := d.fleet.keep(serving, n); err != nil {
				fail(err)
			}
		})
	}
	err := d.visits.visit(ctx, d.guests, atOnce, func(done int) error { return d.disturb(ctx, done) })
	if err == nil {
		err = d.released(ctx)
	}
	d.visits.client.CloseIdleConnections() // else servers wait for their requests
	stop()
	keepers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		err = errors.Join(err, cause)
	}
	fail(nil)
	return err
}

// disturb kills servers, as many as are due when so many customers have been there.
func (d *stage) disturb(ctx context.Context, done int) error {
	for i := range d.kills {
		if done == (i+1)*d.customers/(d.kills+1) {
			if err := d.fleet.kill(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// released waits until no job is left that gives seats back.
func (d *stage) released(ctx context.Context) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		r, err := d.shop.releases.Resource(ctx, "release")
		if err != nil || r.Queued+r.Running == 0 {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%d orders wait for their release, and %d are at it: %w", r.Queued, r.Running, context.Cause(ctx))
		}
	}
}

// report tells what came of the visit, and whether all is right.
func (d *stage) report(out io.Writer, took time.Duration, checks []report.Check) error {
	count := map[string]int{}
	for _, v := range d.guests {
		for _, w := range v.wishes {
			switch {
			case w.refused != "":
				count[w.refused]++
			case w.invoice > 0:
				count["paid"]++
			case w.late:
				count["late"]++
			default:
				count["left"]++
			}
		}
	}
	times := slices.Sorted(slices.Values(d.visits.times))
	fmt.Fprintf(out, "%d customers at %d servers, %d kills\n\n", d.customers, d.servers, d.fleet.kills)
	fmt.Fprintf(out, "orders    %d paid; given back: %d not paid, %d paid too late; refused: %d for a seat that was taken, %d for more than %d seats\n",
		count["paid"], count["left"], count["late"], count["taken"], count["limit"], mostSeats)
	fmt.Fprintf(out, "requests  %d answered, median %v, 99 %% within %v; %d had to be repeated\n", len(times), round(times, 50), round(times, 99), d.visits.repeated)
	fmt.Fprintf(out, "%.1f s until the last seat was paid or free\n\naudit of the tables\n", took.Seconds())
	return report.Write(out, checks)
}

// round is the time within which so many of a hundred were answered.
func round(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond)
}

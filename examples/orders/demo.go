package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/examples/internal/report"
	"github.com/dynahold/dynahold/localdb"
)

// What the shop has at first.
const (
	products  = 24
	customers = 40
	stock     = 120    // pieces of each
	balance   = 60_000 // cents of each customer
)

func productID(i int) string  { return fmt.Sprintf("p-%02d", i+1) }
func customerID(i int) string { return fmt.Sprintf("c-%02d", i+1) }
func price(i int) int64       { return int64(199 + 150*i) }

// stage is a run: servers, clients and a warehouse.
type stage struct {
	settings
	out       io.Writer
	client    *dynamodb.Client
	shop      *shop
	market    *market
	warehouse *warehouse
	crew      *crew.Crew[event]

	mu     sync.Mutex
	killed int // guarded by mu, which guards out too
}

// demonstrate lets clients buy, and audits what came of it.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	s.tables = "dynahold-orders-" + rand.Text()[:8] + "-"
	d := &stage{settings: s, out: out, client: engine.Client(), market: newMarket()}
	if d.shop, err = openShop(d.client, s.tables); err != nil {
		return err
	}
	defer crew.Drop(ctx, "orders", errs, d.client, s.tables+"products", s.tables+"customers", s.tables+"orders", s.tables+"notices")
	if err := d.fill(ctx); err != nil {
		return err
	}
	if d.warehouse, err = openWarehouse(); err != nil {
		return err
	}
	defer d.warehouse.close()
	all := wishes(s.n, 1)
	fmt.Fprintf(out, "%d clients make %d purchases of %d products from %d servers\n\n", s.clients, s.n, products, s.servers)
	began := time.Now()
	if err := d.run(ctx, engine.Endpoint(), all); err != nil {
		return err
	}
	took := time.Since(began)
	checks, err := d.audit(ctx, all)
	if err != nil {
		return err
	}
	return d.report(all, took, checks)
}

// fill puts products on the shelves and money in the customers' pockets.
func (d *stage) fill(ctx context.Context) error {
	if err := d.shop.ensureTables(ctx); err != nil {
		return err
	}
	for i := range products {
		if _, err := d.shop.products.Create(ctx, product{SKU: productID(i), Price: price(i), Stock: stock}); err != nil {
			return err
		}
	}
	for i := range customers {
		if _, err := d.shop.customers.Create(ctx, customer{ID: customerID(i), Balance: balance}); err != nil {
			return err
		}
	}
	return nil
}

// run starts the servers, lets the clients buy, and waits until the warehouse knows.
func (d *stage) run(ctx context.Context, endpoint string, all []*purchase) (err error) {
	running, stop := context.WithCancel(ctx)
	d.crew, err = crew.Start[event](running, crew.Config{Prefix: "s", Size: d.servers, Endpoint: endpoint, Grace: 10 * time.Second, Args: func(name string) []string {
		return []string{"-server", name, "-tables", d.tables, "-warehouse", d.warehouse.url}
	}})
	if err != nil {
		stop()
		return err
	}
	defer func() {
		stop()
		d.market.client.CloseIdleConnections() // else servers wait for their requests
		for range d.crew.Heard {               // until all have ended
		}
	}()
	for range d.servers {
		select {
		case e, ok := <-d.crew.Heard:
			if !ok {
				return fmt.Errorf("a server did not start: %w", errors.Join(d.crew.Errs()...))
			}
			d.market.servers[e.Who] = e.Address
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := d.market.buy(ctx, all, d.clients, d.disturb); err != nil {
		return err
	}
	if err := d.relayed(ctx); err != nil {
		return err
	}
	if died := d.crew.Errs(); len(died) > d.killed {
		return errors.Join(died...)
	}
	return nil
}

// disturb kills the busiest server when a third, and another when two thirds of the
// purchases are made.
func (d *stage) disturb(done int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.kill || done < (d.killed+1)*d.n/3 || d.killed == 2 {
		return
	}
	d.slay()
}

// slay kills the busiest server.
func (d *stage) slay() {
	server, open := d.market.busiest()
	_ = d.crew.Kill(server) // it may have ended by itself
	d.market.closed(server)
	d.killed++
	fmt.Fprintf(d.out, "%s killed with %d requests under way\n", server, open)
}

// relayed waits until the outbox is empty.
func (d *stage) relayed(ctx context.Context) error {
	look := time.NewTicker(idle)
	defer look.Stop()
	for {
		left := 0
		for _, err := range d.shop.notices.Table().Query(ctx, outbox) {
			if err != nil {
				return err
			}
			left++
		}
		if left == 0 {
			return nil
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return fmt.Errorf("%d notices were not sent: %w", left, ctx.Err())
		}
	}
}

// report tells what came of the purchases, and whether all is right.
func (d *stage) report(all []*purchase, took time.Duration, checks []report.Check) error {
	count := map[string]int{}
	for _, p := range all {
		switch {
		case p.order.Status != "":
			count[p.order.Status]++
		default:
			count["refused"]++
		}
	}
	twice := 0
	for _, n := range d.warehouse.came {
		if n > 1 {
			twice++
		}
	}
	m := d.market
	fmt.Fprintf(d.out, "\npurchases      %d placed, %d of them cancelled, %d refused\n", count[placed]+count[cancelled], count[cancelled], count["refused"])
	fmt.Fprintf(d.out, "asked again    %d without an answer, %d at a bad moment; %d answers were those of before\n", m.lost, m.busy, m.repeats)
	fmt.Fprintf(d.out, "notices        %d sent, %d of them twice\n", len(d.warehouse.came), twice)
	fmt.Fprintf(d.out, "%.1f s, %.0f purchases/s\n\naudit of the tables\n", took.Seconds(), float64(len(all))/took.Seconds())
	return report.Write(d.out, checks)
}

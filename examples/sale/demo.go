package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/examples/internal/report"
	"github.com/dynahold/dynahold/localdb"
)

// stage is a run.
type stage struct {
	settings
	endpoint string

	mu     sync.Mutex
	told   []verdict // guarded by mu
	killed int       // guarded by mu
}

// demonstrate lets processes sell while they are killed, and audits what came of it.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+time.Duration(s.customers)*100*time.Millisecond)
	defer cancel()
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	s.table = "dynahold-sale-" + rand.Text()[:8]
	shop, err := open(engine.Client(), s.table)
	if err != nil {
		return err
	}
	defer crew.Drop(ctx, "sale", errs, engine.Client(), s.table)
	if err := shop.editions.Table().EnsureTable(ctx); err != nil {
		return err
	}
	if _, err := shop.editions.Create(ctx, edition{Shop: "gallery", Name: "print 1", Pieces: s.pieces}); err != nil {
		return err
	}
	d := &stage{settings: s, endpoint: engine.Endpoint()}
	began := time.Now()
	if err := d.run(ctx); err != nil {
		return err
	}
	took := time.Since(began)
	sold, err := shop.editions.Get(ctx, print1)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d customers at %d processes, %d kills: %d pieces sold, in %.1f s\n\naudit of the item\n", s.customers, s.processes, d.killed, len(sold.Owners), took.Seconds())
	return report.Write(out, audit(s, sold, d.told))
}

// run keeps all sellers at work until each has served its customers.
func (d *stage) run(ctx context.Context) error {
	sellers := make([]int, d.processes)
	for i := range sellers {
		sellers[i] = i + 1
	}
	return crew.Each(ctx, d.processes, sellers, d.keep)
}

// keep starts a seller, again and again, until it was not killed.
func (d *stage) keep(ctx context.Context, seller int) error {
	for {
		c, err := crew.Start[verdict](ctx, crew.Config{Prefix: "s", Size: 1, Endpoint: d.endpoint, Args: func(string) []string {
			return []string{"-seller", strconv.Itoa(seller), "-table", d.table, "-processes", strconv.Itoa(d.processes), "-customers", strconv.Itoa(d.customers)}
		}})
		if err != nil {
			return err
		}
		killed := false
		for v := range c.Heard {
			if d.hear(v) && !killed {
				killed = c.Kill(c.Names[0]) == nil // else it has ended by itself
			}
		}
		if !killed || ctx.Err() != nil {
			return errors.Join(append(c.Errs(), context.Cause(ctx))...)
		}
	}
}

// hear notes what a customer was told, and whether the process that said so is to be killed.
func (d *stage) hear(v verdict) (kill bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, v)
	if d.killed == d.kills || len(d.told) < (d.killed+1)*d.customers/(d.kills+1) {
		return false
	}
	d.killed++
	return true
}

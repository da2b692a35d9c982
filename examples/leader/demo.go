package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

// demonstrate runs the candidates, disturbs them, and verifies the ledger.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	prefix := "dynahold-leader-" + rand.Text()[:8]
	defer crew.Drop(ctx, "leader", errs, engine.Client(), prefix+"-locks", prefix+"-ledger")
	if err := prepare(ctx, engine.Client(), prefix); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d candidates, lease %v\n\n", s.candidates, s.lease)
	running, stop := context.WithCancel(ctx)
	defer stop()
	c, err := start(running, s, prefix, engine.Endpoint())
	if err != nil {
		return err
	}
	d := &drama{crew: c, to: ledger{engine.Client(), prefix + "-ledger"}, out: out, began: time.Now(), stop: stop}
	deadline := time.AfterFunc(30*time.Second+10*s.lease, stop)
	defer deadline.Stop()
	disturb := d.disturb
	if s.disturb != nil {
		disturb = func(e event) { s.disturb(d, e) }
	}
	for e := range c.Heard {
		d.hear(e)
		disturb(e)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	entries, err := d.to.read(ctx)
	if err != nil {
		return err
	}
	return d.conclude(entries)
}

// start launches the candidates; they end with ctx.
func start(ctx context.Context, s settings, table, endpoint string) (*crew.Crew[event], error) {
	return crew.Start[event](ctx, crew.Config{Prefix: "c", Size: s.candidates, Endpoint: endpoint, Args: func(name string) []string {
		return []string{"-candidate", name, "-table", table, "-lease", s.lease.String()}
	}})
}

func prepare(ctx context.Context, client *dynamodb.Client, prefix string) error {
	locks, err := mutex.New(client, prefix+"-locks", mutex.Config{})
	if err != nil {
		return err
	}
	book, err := repo.NewKeyTable(client, prefix+"-ledger", repo.KeySchema{Partition: repo.KeyAttribute{Name: "id"}}, repo.TableConfig{})
	if err != nil {
		return err
	}
	return errors.Join(locks.EnsureTable(ctx), book.EnsureTable(ctx))
}

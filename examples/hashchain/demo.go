package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/dynahold/dynahold/examples/internal/crew"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/pessimistic"
	"github.com/dynahold/dynahold/repo"
)

// demonstrate runs the workers, and shows and verifies what they did.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	name := "dynahold-hashchain-" + rand.Text()[:8]
	table, err := repo.NewTable[chain](engine.Client(), name, repo.TableConfig{})
	if err != nil {
		return err
	}
	defer crew.Drop(ctx, "hashchain", errs, engine.Client(), name)
	if err := table.EnsureTable(ctx); err != nil {
		return err
	}
	chains, err := pessimistic.New(table, pessimistic.Config{})
	if err != nil {
		return err
	}
	if _, err := chains.Create(ctx, chain{ID: "chain"}); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d processes, %d links, %v of work under the lock, lease %v\n", s.workers, s.links, s.work, s.lease)
	began := time.Now()
	c, err := start(ctx, s, name, engine.Endpoint())
	if err != nil {
		return err
	}
	events, victim := listen(c, s, out)
	ended := time.Now()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	deaths := c.Errs()
	for _, err := range deaths {
		if victim == "" || len(deaths) > 1 {
			return errors.Join(deaths...)
		}
		fmt.Fprintf(out, "killed while it held the lock: worker %v\n", err)
	}
	final, err := chains.Get(ctx, chainKey)
	if err != nil {
		return err
	}
	all := holds(events, ended)
	fmt.Fprintf(out, "\nwho held the lock (# committed, x died holding it)\n%s\n", timeline(all, c.Names, began, ended, 72))
	report(out, c.Names, events, all)
	faults := append(final.verify(events), overlaps(all)...)
	if len(final.Links) != s.links {
		faults = append(faults, fmt.Sprintf("the chain has %d links, want %d", len(final.Links), s.links))
	}
	for _, f := range faults {
		fmt.Fprintln(out, "  WRONG", f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("the chain is broken in %d places", len(faults))
	}
	fmt.Fprintf(out, "\nchain of %d links intact, every acknowledged link in it once, tokens growing, no two holders at once\n", len(final.Links))
	return nil
}

// start launches the workers; they end with ctx.
func start(ctx context.Context, s settings, table, endpoint string) (*crew.Crew[event], error) {
	return crew.Start[event](ctx, crew.Config{Prefix: "w", Size: s.workers, Endpoint: endpoint, Args: func(name string) []string {
		return []string{"-worker", name, "-table", table, "-links", strconv.Itoa(s.links), "-work", s.work.String(), "-lease", s.lease.String()}
	}})
}

// listen collects what the workers say, and kills one that holds the lock when
// a third of the chain is done.
func listen(c *crew.Crew[event], s settings, out io.Writer) (events []event, victim string) {
	done := 0
	for e := range c.Heard {
		events = append(events, e)
		switch {
		case e.Kind == committed:
			done++
		case e.Kind == failed:
			fmt.Fprintf(out, "%s: %s\n", e.Worker, e.Error)
		case s.kill && victim == "" && done >= s.links/3:
			victim = e.Worker
			_ = c.Kill(victim) // it may have ended by itself
		}
	}
	slices.SortStableFunc(events, func(a, b event) int { return a.At.Compare(b.At) })
	return events, victim
}

// report prints what each worker did.
func report(out io.Writer, names []string, events []event, all []hold) {
	w := tabwriter.NewWriter(out, 2, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "worker\tlinks\tmean wait\tmean hold\t")
	for _, name := range names {
		var links, holds int
		var wait, held float64
		for _, e := range events {
			if e.Worker == name && e.Kind == acquired {
				wait += e.Wait
				holds++
			}
		}
		for _, h := range all {
			if h.worker == name && h.ended {
				links++
				held += h.to.Sub(h.from).Seconds()
			}
		}
		fmt.Fprintf(w, "%s\t%d\t%.0f ms\t%.1f ms\t\n", name, links, 1e3*wait/max(1, float64(holds)), 1e3*held/max(1, float64(links)))
	}
	_ = w.Flush()
}

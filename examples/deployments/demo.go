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
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/localdb"
	"github.com/dynahold/dynahold/repo"
)

// office is the operator's side of the demonstration.
type office struct {
	settings
	plan  []deployment
	work  *jobs.Queue[deployment]
	site  site
	board *board
	crew  *crew.Crew[event]
	done  int
	troubles
}

// demonstrate queues the plan, runs the dispatchers and audits the result.
func demonstrate(ctx context.Context, s settings, out, errs io.Writer) error {
	engine, err := localdb.Start(ctx, localdb.Config{})
	if err != nil {
		return err
	}
	defer func() { _ = engine.Close() }()
	client, prefix := engine.Client(), "dynahold-deployments-"+rand.Text()[:8]
	o := &office{settings: s, site: site{client, prefix + "-site"}, troubles: newTroubles()}
	if o.plan, err = readPlan(s.n); err != nil {
		return err
	}
	o.board = newBoard(out, o.plan)
	if o.work, err = open(client, s, prefix); err != nil {
		return err
	}
	defer crew.Drop(ctx, "deployments", errs, client, prefix+"-work", prefix+"-site")
	if err := o.prepare(ctx, client); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d deployments to %d environments, %d dispatcher processes, lease %v\n\n", len(o.plan), len(o.board.order), s.dispatchers, s.lease)
	began := time.Now()
	running, stop := context.WithCancel(ctx)
	defer stop()
	if o.crew, err = start(running, s, prefix, engine.Endpoint()); err != nil {
		return err
	}
	err = o.watch(ctx)
	o.wake("to end") // while it is paused it cannot
	stop()
	for e := range o.crew.Heard { // until all have ended
		o.hear(e)
	}
	if err != nil {
		return err
	}
	return o.conclude(ctx, out, time.Since(began))
}

// start launches the dispatchers. When ctx ends they are asked to end, and
// finish or give back what they do.
func start(ctx context.Context, s settings, table, endpoint string) (*crew.Crew[event], error) {
	return crew.Start[event](ctx, crew.Config{Prefix: "p", Size: s.dispatchers, Endpoint: endpoint, Grace: 10 * time.Second, Args: func(name string) []string {
		return []string{"-dispatcher", name, "-table", table, "-lease", s.lease.String()}
	}})
}

func (o *office) prepare(ctx context.Context, client *dynamodb.Client) error {
	sites, err := repo.NewKeyTable(client, o.site.table, repo.KeySchema{Partition: repo.KeyAttribute{Name: "environment"}}, repo.TableConfig{})
	if err != nil {
		return err
	}
	if err := errors.Join(o.work.EnsureTable(ctx), sites.EnsureTable(ctx)); err != nil {
		return err
	}
	for environment, limit := range limits {
		if err := o.work.SetLimit(ctx, environment, limit); err != nil {
			return err
		}
	}
	for _, d := range o.plan {
		if _, err := o.work.Enqueue(ctx, d.Environment, d); err != nil {
			return err
		}
	}
	return nil
}

// watch follows the work until all of it is done.
func (o *office) watch(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	look := time.NewTicker(150 * time.Millisecond)
	defer look.Stop()
	for {
		select {
		case e, ok := <-o.crew.Heard:
			if err := o.meet(e, ok); err != nil {
				return err
			}
		case <-look.C:
			// What has been said comes first. A look can take as long as the work does,
			// and then this tick is one of many: all would be over, and nothing heard.
			for n := len(o.crew.Heard); n > 0; n-- {
				e, ok := <-o.crew.Heard
				if err := o.meet(e, ok); err != nil {
					return err
				}
			}
			o.tend()
			left, err := o.look(ctx)
			if err != nil {
				return err
			}
			o.board.draw()
			if left == 0 {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// meet hears an event, and disturbs dispatchers after it. Without ok there is
// none: all dispatchers have ended.
func (o *office) meet(e event, ok bool) error {
	if !ok {
		return fmt.Errorf("all dispatchers have ended: %v", o.crew.Errs())
	}
	o.hear(e)
	if o.settings.disturb != nil {
		o.settings.disturb(o, e)
	} else {
		o.disturb(e)
	}
	return nil
}

// hear notes what a dispatcher said.
func (o *office) hear(e event) {
	o.board.hear(e)
	if e.Kind == ended {
		o.done++
	}
	o.follow(e)
}

// look reads the counters, and mends what has failed for good. left is what is
// not done.
func (o *office) look(ctx context.Context) (left int, _ error) {
	for r, err := range o.work.Resources(ctx) {
		if err != nil {
			return 0, err
		}
		o.board.rows[r.Name].now = r
		left += r.Queued + r.Running + r.Dead
		if r.Dead == 0 {
			continue
		}
		for d, err := range o.work.Dead(ctx, r.Name) {
			if err != nil {
				return 0, err
			}
			o.board.tell("operator  dead letter %s (%s) after %d attempts: %s; mended, and put back", d.Value.ID, d.Value.name(), d.Attempts, d.Error)
			o.giveUp(d.Value.ID)
			if d.Value.Needs != "" { // else its holders have died too often
				if err := o.site.provide(ctx, r.Name, d.Value.Needs); err != nil {
					return 0, err
				}
			}
			if err := o.work.Requeue(ctx, r.Name, d.ID); err != nil {
				return 0, err
			}
		}
	}
	return left, nil
}

// conclude audits the tables.
func (o *office) conclude(ctx context.Context, out io.Writer, took time.Duration) error {
	var faults []string
	over := 0
	for _, name := range o.board.order {
		log, _, err := o.site.visits(ctx, name)
		if err != nil {
			return err
		}
		faults = append(faults, audit(name, o.plan, log, o.evidence)...)
		over += takenOver(log)
		for _, v := range log { // who was killed may have ended more than it could say
			if v.what == ended {
				o.board.rows[name].done[v.id] = true
			}
		}
	}
	counters, err := o.counters(ctx)
	if err != nil {
		return err
	}
	faults = append(faults, counters...)
	if o.board.draw(); !o.board.live {
		fmt.Fprintln(out)
		o.board.table(out)
	}
	for _, f := range faults {
		fmt.Fprintln(out, "  WRONG", f)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%d things are wrong", len(faults))
	}
	fmt.Fprintf(out, "\n%d deployments done in %.1f s, none lost; %d taken over, late writes refused: %d\n", len(o.plan), took.Seconds(), over, o.late)
	fmt.Fprintln(out, "audit: no limit exceeded, the oldest first, none done again without need, counters right")
	return nil
}

// counters audits the counters of the semaphore: they must be those of its
// rows, of which none are left.
func (o *office) counters(ctx context.Context) (faults []string, _ error) {
	for tally, err := range o.work.Audit(ctx) {
		if err != nil {
			return nil, err
		}
		if !tally.OK() || tally.Queued+tally.Running+tally.Dead != 0 {
			faults = append(faults, tally.String())
		}
	}
	return faults, nil
}

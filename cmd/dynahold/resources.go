package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/semaphore"
)

type resourceCommands struct {
	Pause  resourcesPauseCommand  `cmd:"" help:"Stop a resource: no job of it starts, no permit is given. What runs goes on."`
	Resume resourcesResumeCommand `cmd:"" help:"Let a paused resource go on."`
}

// resourceFlags name one resource.
type resourceFlags struct {
	awsFlags
	Table    string `arg:"" help:"Name or ARN of the table."`
	Resource string `arg:"" help:"Name of the resource."`
	Yes      bool   `short:"y" help:"Do not ask."`
}

func resourceFacts(r semaphore.Resource, now time.Time) [][2]string {
	state := "goes on"
	if !r.Paused.IsZero() {
		state = "paused since " + moment(r.Paused, now)
	}
	return [][2]string{{"resource", r.Name}, {"state", state}, {"queued", fmt.Sprint(r.Queued)}, {"running", fmt.Sprintf("%d of %d", r.Running, r.Limit)}, {"dead", fmt.Sprint(r.Dead)}}
}

// change shows a resource, asks, and changes it.
func (f *resourceFlags) change(ctx context.Context, c *console, question, what string, change func(*jobs) error) error {
	all, err := f.jobs(ctx, f.Table)
	if err != nil {
		return err
	}
	r, err := all.Resource(ctx, f.Resource)
	if err != nil {
		return err
	}
	if err := c.confirmFacts(ctx, f.Yes, resourceFacts(r, time.Now()), question); err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	if r, err = all.Resource(ctx, f.Resource); err != nil {
		return err
	}
	return c.printDone(f.Output, what, f.Resource, resourceDocument{r.Name, r.Queued, r.Running, r.Dead, r.Limit, stated(r.Paused)})
}

type resourcesPauseCommand struct{ resourceFlags }

// Help says what goes on.
func (resourcesPauseCommand) Help() string {
	return `No job of the resource is started or taken over, and no permit is given, until resume. What runs or is held goes on and ends as ever; jobs can be enqueued. Pausing what is paused changes nothing.`
}

// Run implements the command.
func (cmd *resourcesPauseCommand) Run(ctx context.Context, c *console) error {
	return cmd.change(ctx, c, "Pause it?", "paused", func(all *jobs) error { return all.Pause(ctx, cmd.Resource) })
}

type resourcesResumeCommand struct{ resourceFlags }

// Run implements the command.
func (cmd *resourcesResumeCommand) Run(ctx context.Context, c *console) error {
	return cmd.change(ctx, c, "Let it go on?", "resumed", func(all *jobs) error { return all.Resume(ctx, cmd.Resource) })
}

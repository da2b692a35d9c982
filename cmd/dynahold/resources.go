package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/jobs"
)

type resourceCommands struct {
	Pause  resourcesPauseCommand  `cmd:"" help:"Stop a resource: no job of it starts, no permit is given. What runs goes on."`
	Resume resourcesResumeCommand `cmd:"" help:"Let a paused resource go on."`
	Limit  resourcesLimitCommand  `cmd:"" help:"Set how many jobs and permits a resource may have at once."`
	Forget resourcesForgetCommand `cmd:"" help:"Remove a resource that nobody uses any more."`
	Audit  resourcesAuditCommand  `cmd:"" help:"Compare the counters of all resources with their rows."`
}

// resourceFlags name one resource.
type resourceFlags struct {
	tableFlags
	Resource string `arg:"" help:"Name of the resource."`
}

// consentedFlags name a resource that is changed after a question.
type consentedFlags struct {
	resourceFlags
	consent
}

// errUnused is why a resource is not there.
var errUnused = errors.New("nobody has used it")

// unused is the error about a resource that nobody has used. The counters of one that was only
// mistyped are those of one at rest: the list of all tells.
func (all *work) unused(ctx context.Context, r jobs.Resource) error {
	if !r.Paused.IsZero() || r.Queued+r.Running+r.Dead > 0 {
		return nil
	}
	for other, err := range all.Resources(ctx) {
		switch {
		case other.Name == r.Name:
			return nil
		case err != nil && other.Name == "":
			return err
		}
	}
	if err := all.nothing(ctx, 0, nil); err != nil {
		return err
	}
	return outcome{exitNothing, fmt.Errorf("resource %q is not in table %q: %w", r.Name, all.table.name, errUnused)}
}

// see reads a resource before it is changed. Facts come with errUnused, too.
func (f *consentedFlags) see(ctx context.Context) (all *work, facts [][2]string, err error) {
	if all, err = f.workToChange(ctx); err != nil {
		return nil, nil, err
	}
	r, err := all.Resource(ctx, f.Resource)
	if err != nil {
		return nil, nil, err
	}
	err = all.unused(ctx, r)
	state := "not paused"
	switch {
	case err != nil:
		state = errUnused.Error()
	case !r.Paused.IsZero():
		state = "paused since " + moment(r.Paused, time.Now())
	}
	return all, [][2]string{{"resource", r.Name}, {"state before", state}, {"queued", fmt.Sprint(r.Queued)}, {"running", fmt.Sprintf("%d of %d", r.Running, r.Limit)}, {"dead", fmt.Sprint(r.Dead)}}, err
}

// change shows a resource, asks, and changes it.
func (f *consentedFlags) change(ctx context.Context, c *console, question, what string, change func(*work) error) error {
	all, facts, err := f.see(ctx)
	if err != nil && (what != limited || !errors.Is(err, errUnused)) {
		return err
	}
	if err := c.confirm(ctx, f.Yes, facts, question); err != nil {
		return err
	}
	if err := change(all); err != nil {
		return err
	}
	r, err := all.Resource(ctx, f.Resource)
	if err != nil {
		return doneBut(what, f.Resource, "its counters could not be read again", err)
	}
	return c.printDone(f.Output, what, f.Resource, resourceDocumentOf(r))
}

const limited = "limited" // which registers a resource that nobody has used

type resourcesPauseCommand struct{ consentedFlags }

// Help says what goes on.
func (resourcesPauseCommand) Help() string {
	return `No job of the resource is started or taken over, and no permit is given, until resume. What runs or is held goes on and ends as ever; jobs can be enqueued. Pausing what is paused changes nothing. Exit code 3: nobody has used a resource of this name; limit registers one.`
}

// Run implements the command.
func (cmd *resourcesPauseCommand) Run(ctx context.Context, c *console) error {
	return cmd.change(ctx, c, "Pause it?", "paused", func(all *work) error { return all.Pause(ctx, cmd.Resource) })
}

type resourcesResumeCommand struct{ consentedFlags }

// Help says what is no resource.
func (resourcesResumeCommand) Help() string {
	return `Resuming what is not paused changes nothing. Exit code 3: nobody has used a resource of this name.`
}

// Run implements the command.
func (cmd *resourcesResumeCommand) Run(ctx context.Context, c *console) error {
	return cmd.change(ctx, c, "Let it go on?", "resumed", func(all *work) error { return all.Resume(ctx, cmd.Resource) })
}

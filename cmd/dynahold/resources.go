package main

import (
	"context"
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

// state is how things are with a resource. The counters of one that nobody has used, and
// of one that was only mistyped, are those of one at rest: the list of all tells.
func state(ctx context.Context, all *work, r jobs.Resource, now time.Time) (state string, used bool, err error) {
	if !r.Paused.IsZero() {
		return "paused since " + moment(r.Paused, now), true, nil
	}
	if r.Queued+r.Running+r.Dead > 0 {
		return "not paused", true, nil
	}
	err = collect(all.Resources(ctx), func(other jobs.Resource) { used = used || other.Name == r.Name })
	if used {
		return "not paused", true, nil
	}
	if err == nil {
		err = all.nothing(ctx, 0, nil)
	}
	return "nobody has used it", false, err
}

// see reads a resource before it is changed.
func (f *consentedFlags) see(ctx context.Context, mustBeUsed bool) (all *work, facts [][2]string, err error) {
	if all, err = f.workToChange(ctx); err != nil {
		return nil, nil, err
	}
	r, err := all.Resource(ctx, f.Resource)
	if err != nil {
		return nil, nil, err
	}
	state, used, err := state(ctx, all, r, time.Now())
	switch {
	case err != nil:
		return nil, nil, err
	case !used && mustBeUsed:
		return nil, nil, outcome{exitNothing, fmt.Errorf("resource %q is not in table %q: nobody has used it", f.Resource, f.Table)}
	}
	return all, [][2]string{{"resource", r.Name}, {"state before", state}, {"queued", fmt.Sprint(r.Queued)}, {"running", fmt.Sprintf("%d of %d", r.Running, r.Limit)}, {"dead", fmt.Sprint(r.Dead)}}, nil
}

// change shows a resource, asks, and changes it.
func (f *consentedFlags) change(ctx context.Context, c *console, question, what string, change func(*work) error) error {
	all, facts, err := f.see(ctx, what == resumed)
	if err != nil {
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

const resumed = "resumed"

type resourcesPauseCommand struct{ consentedFlags }

// Help says what goes on.
func (resourcesPauseCommand) Help() string {
	return `No job of the resource is started or taken over, and no permit is given, until resume. What runs or is held goes on and ends as ever; jobs can be enqueued. Pausing what is paused changes nothing.`
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
	return cmd.change(ctx, c, "Let it go on?", resumed, func(all *work) error { return all.Resume(ctx, cmd.Resource) })
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
)

type jobsDeadCommand struct {
	awsFlags
	Table    string `arg:"" help:"Name or ARN of the table."`
	Resource string `arg:"" help:"Resource whose dead letters are listed."`
}

// Run implements the command.
func (cmd *jobsDeadCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.jobs(ctx, cmd.Table)
	if err != nil {
		return err
	}
	list := []jobDocument{}
	var unread []error
	for j, err := range all.Dead(ctx, cmd.Resource) {
		if err != nil {
			unread = append(unread, err)
			if j.ID == "" {
				continue
			}
		}
		list = append(list, deadDocument(j))
	}
	return errors.Join(append(unread, printJobs(c, cmd.Output, list, "no dead letter of "+cmd.Resource, time.Now()))...)
}

// jobFlags name one job.
type jobFlags struct {
	awsFlags
	Table    string `arg:"" help:"Name or ARN of the table."`
	Resource string `arg:"" help:"Resource of the job."`
	ID       string `arg:"" help:"Id of the job, as list and dead tell it."`
}

func (f *jobFlags) missing(what string) error {
	return outcome{exitNothing, fmt.Errorf("%s %q of resource %q is not in table %q", what, f.ID, f.Resource, f.Table)}
}

// dead finds a dead letter. One whose value cannot be read is found, too.
func (f *jobFlags) dead(ctx context.Context, all *jobs) (jobDocument, error) {
	var last error
	for j, err := range all.Dead(ctx, f.Resource) {
		if j.ID == f.ID {
			return deadDocument(j), nil
		}
		if err != nil && !errors.Is(err, repo.ErrSchema) {
			last = err
		}
	}
	if last != nil {
		return jobDocument{}, last
	}
	return jobDocument{}, f.missing("dead letter")
}

type jobsShowCommand struct{ jobFlags }

// Run implements the command.
func (cmd *jobsShowCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.jobs(ctx, cmd.Table)
	if err != nil {
		return err
	}
	now := time.Now()
	for j, err := range all.Jobs(ctx, cmd.Resource) {
		if j.ID == cmd.ID {
			return cmd.print(c, queuedDocument(j, now), now)
		}
		if err != nil && !errors.Is(err, repo.ErrSchema) {
			return err
		}
	}
	d, err := cmd.dead(ctx, all)
	if end := new(outcome); errors.As(err, end) {
		return cmd.missing("job")
	}
	if err != nil {
		return err
	}
	return cmd.print(c, d, now)
}

func (f *jobFlags) print(c *console, d jobDocument, now time.Time) error {
	if f.Output == "json" {
		return c.printJSON(d)
	}
	facts := [][2]string{{"job", d.ID}, {"resource", f.Resource}, {"state", d.stands(now)}, {"attempts", fmt.Sprint(d.Attempts)}}
	if d.Enqueued != nil {
		facts = append(facts, [2]string{"enqueued", moment(*d.Enqueued, now)})
	}
	if d.State == "running" {
		facts = append(facts, [2]string{"since", since(d.Since, now)})
	}
	if d.Token != 0 {
		facts = append(facts, [2]string{"token", fmt.Sprint(d.Token)})
	}
	if d.Error != "" {
		facts = append(facts, [2]string{"last error", d.Error})
	}
	if d.Value != nil {
		facts = append(facts, [2]string{"value", string(d.Value)})
	}
	return c.printFacts(facts)
}

type jobsRequeueCommand struct{ jobFlags }

// Run implements the command.
func (cmd *jobsRequeueCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.jobs(ctx, cmd.Table)
	if err != nil {
		return err
	}
	err = all.Requeue(ctx, cmd.Resource, cmd.ID)
	return cmd.done(c, "requeued", err)
}

// done reports what was made of a dead letter.
func (f *jobFlags) done(c *console, what string, err error) error {
	switch {
	case errors.Is(err, repo.ErrNotFound):
		return f.missing("dead letter")
	case err != nil:
		return err
	case f.Output == "json":
		return c.printJSON(map[string]string{what: f.ID})
	}
	_, err = fmt.Fprintf(c.out, "%s: %s\n", what, printable(f.ID))
	return err
}

type jobsDiscardCommand struct {
	jobFlags
	Yes bool `short:"y" help:"Do not ask."`
}

// Run implements the command.
func (cmd *jobsDiscardCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.jobs(ctx, cmd.Table)
	if err != nil {
		return err
	}
	d, err := cmd.dead(ctx, all)
	if err != nil {
		return err
	}
	told, shown := *c, cmd.jobFlags
	told.out, shown.Output = c.err, "table" // the output is the result
	if err := shown.print(&told, d, time.Now()); err != nil {
		return err
	}
	if err := c.confirm(ctx, cmd.Yes, "Discard it?"); err != nil {
		return err
	}
	err = all.Discard(ctx, cmd.Resource, cmd.ID)
	if errors.Is(err, repo.ErrNotFound) {
		return outcome{exitMoved, fmt.Errorf("the dead letter %q was requeued or discarded meanwhile", cmd.ID)}
	}
	return cmd.done(c, "discarded", err)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/dynahold/dynahold/repo"
)

type jobsDeadCommand struct {
	resourceFlags
}

// Run implements the command.
func (cmd *jobsDeadCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	list := []jobDocument{}
	var unread []error
	for j, err := range all.Dead(ctx, cmd.Resource) {
		if err != nil {
			unread = append(unread, err)
		}
		if j.ID != "" { // of one that cannot be read, too
			list = append(list, deadDocument(j))
		}
	}
	if err := all.nothingOf(ctx, cmd.Resource, len(list), errors.Join(unread...)); err != nil {
		return err
	}
	return c.printJobs(cmd.Output, list, "no dead letter of "+cmd.Resource, time.Now(), errors.Join(unread...))
}

// jobFlags name one job.
type jobFlags struct {
	resourceFlags
	ID string `arg:"" help:"Id of the job, as list and dead tell it."`
}

func (f *jobFlags) missing(what string) error {
	return outcome{exitNothing, fmt.Errorf("%s %q of resource %q is not in table %q", what, f.ID, f.Resource, f.Table)}
}

// find is the job among some. One that is there and cannot be read comes with an error;
// that it is not there is known only where all others can be read.
func find[J any](f *jobFlags, what string, all iter.Seq2[J, error], document func(J) jobDocument) (jobDocument, error) {
	var unread []error
	for j, err := range all {
		if d := document(j); d.ID == f.ID && d.ID != "" {
			return d, err
		}
		if err != nil {
			unread = append(unread, err)
		}
	}
	if len(unread) > 0 {
		return jobDocument{}, fmt.Errorf("%s %q of resource %q is not among those that can be read: %w", what, f.ID, f.Resource, errors.Join(unread...))
	}
	return jobDocument{}, f.missing(what)
}

// dead finds a dead letter.
func (f *jobFlags) dead(ctx context.Context, all *work) (jobDocument, error) {
	return find(f, "dead letter", all.Dead(ctx, f.Resource), deadDocument)
}

type jobsShowCommand struct{ jobFlags }

// Run implements the command.
func (cmd *jobsShowCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	d, err := cmd.inLine(ctx, all)
	if d.ID == "" {
		if !errors.As(err, new(outcome)) && !errors.Is(err, repo.ErrSchema) {
			return err
		}
		var dead error
		if d, dead = cmd.dead(ctx, all); errors.As(err, new(outcome)) && errors.As(dead, new(outcome)) {
			return cmd.ended(ctx, c, all)
		}
		if d.ID == "" {
			return errors.Join(err, dead)
		}
		err = dead
	}
	if err != nil && d.State != "dead" {
		return err
	}
	return errors.Join(cmd.show(c, d), err)
}

// ended shows what is kept of a job that is not there any more.
func (cmd *jobsShowCommand) ended(ctx context.Context, c *console, all *work) error {
	s, err := all.Status(ctx, cmd.Resource, cmd.ID)
	if errors.Is(err, repo.ErrNotFound) {
		return cmd.missing("job")
	}
	if err != nil {
		return err
	}
	return cmd.show(c, keptDocument(s))
}

// show prints a job.
func (cmd *jobsShowCommand) show(c *console, d jobDocument) error {
	if cmd.Output == "json" {
		return c.printJSON(d)
	}
	return c.print(factsText(cmd.facts(d, time.Now())))
}

// facts are what is known of a job, in words.
func (f *jobFlags) facts(d jobDocument, now time.Time) [][2]string {
	facts := [][2]string{{"job", d.ID}, {"resource", f.Resource}, {"state", d.stands(now)}, {"attempts", fmt.Sprint(d.Attempts)}}
	if d.unusual() {
		facts = append(facts, [2]string{"priority", fmt.Sprint(d.Priority)})
	}
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
	if d.Result != nil {
		facts = append(facts, [2]string{"result", string(d.Result)})
	}
	return facts
}

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/jobs"
)

// inLine finds a job that waits or runs.
func (f *jobFlags) inLine(ctx context.Context, all *work) (jobDocument, error) {
	now := time.Now()
	return find(f, "job in line", all.Jobs(ctx, f.Resource), func(j jobs.JobInfo) jobDocument { return queuedDocument(j, now) })
}

type jobsCancelCommand struct {
	jobFlags
	consent
}

// Help says what it removes.
func (jobsCancelCommand) Help() string {
	return `Removes a job that waits, for good; also one that failed and is to be tried again. One that runs is broken first; a dead letter is discarded.

Exit codes: 0 cancelled; 1 failed, or not agreed to; 2 usage; 3 no such job in line; 4 it runs, or somebody was quicker.`
}

// Run implements the command.
func (cmd *jobsCancelCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.workToChange(ctx)
	if err != nil {
		return err
	}
	d, err := cmd.inLine(ctx, all)
	switch {
	case err != nil:
		return err
	case d.State == "running":
		return outcome{exitMoved, fmt.Errorf("job %q runs at %s, with token %d: break it first; nothing was changed", cmd.ID, d.Owner, d.Token)}
	}
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts: cmd.facts(d, time.Now()), question: "Cancel it?", gone: "somebody was quicker",
		act:  func() error { return all.Cancel(ctx, cmd.Resource, cmd.ID) },
		done: "cancelled", name: cmd.ID, document: d,
	})
}

type jobsBreakCommand struct {
	jobFlags
	Token int64 `required:"" placeholder:"TOKEN" help:"Token of the start, as show tells it: no other is ended."`
	consent
}

// Help says what it does to whom.
func (jobsBreakCommand) Help() string {
	return `Takes a running job from its handler and puts it back at its place in line, the attempt counted; it starts again as soon as there is room. The handler learns it: its context ends, and its end of the job is refused (ErrLockLost). To keep the job from starting, pause its resource first; to be rid of it, cancel it after that.

Exit codes: 0 broken; 1 failed, or not agreed to; 2 usage; 3 no such job in line; 4 it does not run under this token, or somebody was quicker.`
}

// Run implements the command.
func (cmd *jobsBreakCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.workToChange(ctx)
	if err != nil {
		return err
	}
	d, err := cmd.inLine(ctx, all)
	switch {
	case err != nil:
		return err
	case d.State != "running" || d.Token != cmd.Token:
		return outcome{exitMoved, fmt.Errorf("job %q does not run under token %d: it %s, token %d; nothing was changed", cmd.ID, cmd.Token, d.stands(time.Now()), d.Token)}
	}
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts: cmd.facts(d, time.Now()), question: "Break it?", gone: "the run ended meanwhile",
		act:  func() error { return all.BreakJob(ctx, cmd.Resource, cmd.ID, cmd.Token) },
		done: "broken", name: cmd.ID, document: d,
	})
}

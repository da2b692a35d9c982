package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/dynahold/dynahold/jobs"
)

type resourcesLimitCommand struct {
	consentedFlags
	Limit int `arg:"" help:"How many jobs and permits of it there may be at once, from 1."`
}

// Help says whom the limit binds.
func (resourcesLimitCommand) Help() string {
	return `Sets how many jobs and permits a resource may have at once, for all programs, whatever their Limit; it registers a new resource. What runs goes on, also where it is more.`
}

// Run implements the command.
func (cmd *resourcesLimitCommand) Run(ctx context.Context, c *console) error {
	return cmd.change(ctx, c, fmt.Sprintf("Let %d run at once?", cmd.Limit), limited, func(all *work) error {
		return all.SetLimit(ctx, cmd.Resource, cmd.Limit)
	})
}

type resourcesForgetCommand struct{ consentedFlags }

// Help says what is forgotten.
func (resourcesForgetCommand) Help() string {
	return `Removes the row of a resource that nobody uses: it has no jobs, dead letters or permits. With it go its limit and its pause; using it again registers it again.

Exit codes: 0 forgotten; 1 failed, or not agreed to; 2 usage; 3 nobody has used it; 4 it is in use.`
}

// Run implements the command.
func (cmd *resourcesForgetCommand) Run(ctx context.Context, c *console) error {
	all, facts, err := cmd.see(ctx)
	if err != nil {
		return err
	}
	if err := c.confirm(ctx, cmd.Yes, facts, "Forget it?"); err != nil {
		return err
	}
	err = all.Forget(ctx, cmd.Resource)
	switch {
	case errors.Is(err, jobs.ErrBusy):
		return outcome{exitMoved, fmt.Errorf("resource %q is in use; nothing was changed: %w", cmd.Resource, err)}
	case err != nil:
		return err
	}
	return c.printDone(cmd.Output, "forgotten", cmd.Resource, cmd.Resource)
}

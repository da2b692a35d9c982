package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/jobs"
)

type resourcesLimitCommand struct {
	resourceFlags
	Limit int `arg:"" help:"How many jobs and permits of it there may be at once, from 1."`
	consent
}

// Help says whom the limit binds.
func (resourcesLimitCommand) Help() string {
	return `Sets how many jobs and permits a resource may have at once, for all programs, whatever their Limit; it registers a new resource. What runs goes on, also where it is more.`
}

// Run implements the command.
func (cmd *resourcesLimitCommand) Run(ctx context.Context, c *console) error {
	f := pauseFlags{cmd.resourceFlags, cmd.consent}
	return f.change(ctx, c, fmt.Sprintf("Let %d run at once?", cmd.Limit), "limited", func(all *work) error {
		return all.SetLimit(ctx, cmd.Resource, cmd.Limit)
	})
}

type resourcesForgetCommand struct {
	resourceFlags
	consent
}

// Help says what is forgotten.
func (resourcesForgetCommand) Help() string {
	return `Removes the row of a resource that nobody uses: it has no jobs, dead letters or permits. With it go its limit and its pause; using it again registers it again.

Exit codes: 0 forgotten; 1 failed, or not agreed to; 2 usage; 3 nobody has used it; 4 it is in use.`
}

// Run implements the command.
func (cmd *resourcesForgetCommand) Run(ctx context.Context, c *console) error {
	f := pauseFlags{cmd.resourceFlags, cmd.consent}
	all, facts, err := f.see(ctx, true)
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

type resourcesAuditCommand struct{ tableFlags }

// Help says what is compared.
func (resourcesAuditCommand) Help() string {
	return `Counts the rows of every resource, and compares them with its counters. It may run beside work, and reads the whole table. A resource that changed all the time is told as such, and nothing was found of it.

Exit codes: 0 all is right; 1 failed; 2 usage; 3 there is no table; 5 counters are not those of the rows.`
}

type tallyDocument struct {
	resourceDocument
	Counted  countedDocument `json:"counted"`
	Changing bool            `json:"changing"` // it changed all the time: the two do not belong together
	OK       bool            `json:"ok"`
}

type countedDocument struct {
	Queued  int `json:"queued"`
	Later   int `json:"later"`
	Running int `json:"running"` // jobs
	Permits int `json:"permits"`
	Dead    int `json:"dead"`
}

// Run implements the command.
func (cmd *resourcesAuditCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	list, rows, wrong := []tallyDocument{}, [][]string(nil), 0
	unread := collect(all.Audit(ctx), func(t jobs.Tally) {
		n := t.Counted
		list = append(list, tallyDocument{resourceDocumentOf(t.Resource), countedDocument{n.Queued, n.Later, n.Running, n.Permits, n.Dead}, t.Changing, t.OK()})
		verdict := "ok"
		switch {
		case !t.OK():
			verdict = "wrong"
			wrong++
		case t.Changing:
			verdict = "changed all the time"
		}
		both := func(counter, counted int) string { return fmt.Sprintf("%d / %d", counter, counted) }
		rows = append(rows, []string{t.Name, both(t.Queued, n.Queued), both(t.Later, n.Later), both(t.Running, n.Running+n.Permits), both(t.Dead, n.Dead), verdict})
	})
	if err := all.nothing(ctx, len(list), unread); err != nil {
		return err
	}
	head := []string{"resource", "queued / counted", "later", "running", "dead", "verdict"}
	if err := c.printList(cmd.Output, list, head, rows, "no resource was ever used", unread); err != nil || wrong == 0 {
		return err
	}
	return outcome{exitFound, fmt.Errorf("counters that are not those of the rows: %d resources", wrong)}
}

// see reads a resource before it is changed.
func (f *pauseFlags) see(ctx context.Context, mustBeUsed bool) (all *work, facts [][2]string, err error) {
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

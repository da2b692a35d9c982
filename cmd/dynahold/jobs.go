package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

type jobCommands struct {
	List    jobsListCommand    `cmd:"" help:"List the resources with their counters, or the jobs of one in the order of its line."`
	Show    jobsShowCommand    `cmd:"" help:"Show one job or dead letter."`
	Dead    jobsDeadCommand    `cmd:"" help:"List the dead letters of a resource: jobs that failed for good."`
	Cancel  jobsCancelCommand  `cmd:"" help:"Remove a job that waits."`
	Break   jobsBreakCommand   `cmd:"" help:"Take a running job from its handler by force, back into its line."`
	Requeue jobsRequeueCommand `cmd:"" help:"Put a dead letter at the end of its line, to be tried again."`
	Discard jobsDiscardCommand `cmd:"" help:"Remove a dead letter for good."`
}

// jobs are those of a table. What travels with them stays as it is.
type jobs = semaphore.Semaphore[json.RawMessage]

func (f *awsFlags) jobs(ctx context.Context, table string) (*jobs, error) {
	client, cfg, err := f.service(ctx)
	if err != nil {
		return nil, err
	}
	return semaphore.New[json.RawMessage](client, table, semaphore.Config{Table: cfg})
}

type resourceDocument struct {
	Resource string `json:"resource"`
	Queued   int    `json:"queued"`
	Running  int    `json:"running"`
	Dead     int    `json:"dead"`
	Limit    int    `json:"limit"`

	Paused *time.Time `json:"paused_since"` // null: it is not paused
}

type jobDocument struct {
	ID        string          `json:"id"`
	State     string          `json:"state"` // queued, running, dead
	Attempts  int             `json:"attempts"`
	Owner     string          `json:"owner,omitempty"`
	Token     int64           `json:"token,omitempty"`
	Enqueued  *time.Time      `json:"enqueued,omitempty"` // as far as the job tells
	Since     *time.Time      `json:"since,omitempty"`    // it runs, or lies in the dead letters
	Until     *time.Time      `json:"until,omitempty"`
	Expired   bool            `json:"expired,omitempty"`
	NotBefore *time.Time      `json:"not_before,omitempty"`
	Error     string          `json:"error,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"` // of dead letters
}

func queuedDocument(j semaphore.JobInfo, now time.Time) jobDocument {
	d := jobDocument{ID: j.ID, State: "queued", Attempts: j.Attempts, Error: j.Error, NotBefore: stated(j.NotBefore), Enqueued: stated(j.Enqueued), Since: stated(j.Since)}
	if j.Running {
		d.State, d.Owner, d.Token, d.Until, d.Expired = "running", j.Owner, j.Token, stated(j.Until), j.Until.Before(now)
	}
	return d
}

func deadDocument(j semaphore.Dead[json.RawMessage]) jobDocument {
	return jobDocument{ID: j.ID, State: "dead", Attempts: j.Attempts, Error: j.Error, Value: j.Value, Enqueued: stated(j.Enqueued), Since: stated(j.Died)}
}

// stands says how things are with a job.
func (d jobDocument) stands(now time.Time) string {
	switch {
	case d.State == "running" && d.Expired:
		return fmt.Sprintf("ran at %s until %s: expired, taken over by the next look", d.Owner, moment(*d.Until, now))
	case d.State == "running":
		return fmt.Sprintf("runs at %s until %s", d.Owner, moment(*d.Until, now))
	case d.NotBefore != nil && d.NotBefore.After(now):
		return "failed, due at " + moment(*d.NotBefore, now)
	case d.State == "queued":
		return "waits"
	case d.Since != nil:
		return "dead since " + moment(*d.Since, now)
	}
	return "dead"
}

type jobsListCommand struct {
	awsFlags
	Table    string `arg:"" help:"Name or ARN of the table."`
	Resource string `arg:"" optional:"" help:"Resource whose jobs are listed."`
}

// Run implements the command.
func (cmd *jobsListCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.jobs(ctx, cmd.Table)
	if err != nil {
		return err
	}
	if cmd.Resource != "" {
		return cmd.line(ctx, c, all)
	}
	now, list, rows := time.Now(), []resourceDocument{}, [][]string(nil)
	var unread []error
	for r, err := range all.Resources(ctx) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		list = append(list, resourceDocument{r.Name, r.Queued, r.Running, r.Dead, r.Limit, stated(r.Paused)})
		paused := ""
		if !r.Paused.IsZero() {
			paused = moment(r.Paused, now)
		}
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Queued), fmt.Sprint(r.Running), fmt.Sprint(r.Limit), fmt.Sprint(r.Dead), paused})
	}
	switch {
	case cmd.Output == "json":
		err = c.printJSON(list)
	case len(rows) == 0 && len(unread) == 0:
		_, err = fmt.Fprintln(c.out, "no resource was ever used")
	case len(rows) > 0:
		err = c.printTable([]string{"resource", "queued", "running", "limit", "dead", "paused since"}, rows)
	}
	return errors.Join(append(unread, err)...)
}

func (cmd *jobsListCommand) line(ctx context.Context, c *console, all *jobs) error {
	now, list := time.Now(), []jobDocument{}
	var unread []error
	for j, err := range all.Jobs(ctx, cmd.Resource) {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		list = append(list, queuedDocument(j, now))
	}
	return errors.Join(append(unread, printJobs(c, cmd.Output, list, "no job stands in the line of "+cmd.Resource, now))...)
}

// printJobs writes a list of jobs, or says that there are none.
func printJobs(c *console, output string, list []jobDocument, none string, now time.Time) error {
	if output == "json" {
		return c.printJSON(list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.out, none)
		return err
	}
	var rows [][]string
	for _, d := range list {
		rows = append(rows, []string{d.ID, d.stands(now), fmt.Sprint(d.Attempts), d.Error})
	}
	return c.printTable([]string{"job", "state", "attempts", "error"}, rows)
}

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

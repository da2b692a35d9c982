package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/semaphore"
)

type jobCommands struct {
	List       jobsListCommand       `cmd:"" help:"List the resources with their counters, or the jobs of one in the order of its line."`
	Show       jobsShowCommand       `cmd:"" help:"Show one job, dead letter, or what is kept of a job that has ended."`
	Dead       jobsDeadCommand       `cmd:"" help:"List the dead letters of a resource: jobs that failed for good."`
	Cancel     jobsCancelCommand     `cmd:"" help:"Remove a job that waits."`
	RunNow     jobsRunNowCommand     `cmd:"" help:"Let a job start that waits for its time, or for its next attempt."`
	Reschedule jobsRescheduleCommand `cmd:"" help:"Give a job that waits another time."`
	Break      jobsBreakCommand      `cmd:"" help:"Take a running job from its handler by force, back into its line."`
	Requeue    jobsRequeueCommand    `cmd:"" help:"Put a dead letter, or many, at the end of the line, to be tried again."`
	Discard    jobsDiscardCommand    `cmd:"" help:"Remove a dead letter, or many, for good."`
	Schedules  jobsSchedulesCommand  `cmd:"" help:"List periodic jobs: their schedules, the last tick and the next."`

	ForgetSchedule jobsForgetScheduleCommand `cmd:"" help:"Remove the schedule of a periodic job that no program has any more."`
}

// work are the jobs and permits of a table. What travels with them stays as it is.
type work struct {
	*jobs.Queue[json.RawMessage]
	permits *semaphore.Semaphore
	table   *opened
}

func (f *tableFlags) work(ctx context.Context) (*work, error) {
	t, err := f.openAs(ctx, ofJobs)
	if err != nil {
		return nil, err
	}
	permits, err := semaphore.New(t.client, f.Table, semaphore.Config{Table: t.cfg})
	if err != nil {
		return nil, err
	}
	all, err := jobs.New[json.RawMessage](t.client, f.Table, jobs.Config{Table: t.cfg})
	return &work{all, permits, t}, err
}

// workToChange is work for a command that writes.
func (f *tableFlags) workToChange(ctx context.Context) (*work, error) {
	all, err := f.work(ctx)
	if err != nil {
		return nil, err
	}
	return all, all.table.carried(ctx)
}

// nothing refuses a list of nothing where the table has rows, and others. Resources are found
// among any number of those.
func (all *work) nothing(ctx context.Context, found int, unread error) error {
	if found > 0 || unread != nil {
		return nil // of what could not be read its own error tells
	}
	for _, err := range all.Resources(ctx) {
		return err
	}
	return all.table.nothing(ctx, ofJobs)
}

// nothingOf is nothing for a list of one resource, which may be mistyped.
func (all *work) nothingOf(ctx context.Context, resource string, found int, unread error) error {
	if found == 0 && unread == nil { // of what could not be read its own error tells
		r, err := all.Resource(ctx, resource)
		if err != nil {
			return err
		}
		return all.unused(ctx, r)
	}
	return nil
}

type resourceDocument struct {
	Resource string `json:"resource"`
	Queued   int    `json:"queued"`
	Later    int    `json:"later"` // of them, those that wait for their time
	Running  int    `json:"running"`
	Dead     int    `json:"dead"`
	Limit    int    `json:"limit"`

	Paused *time.Time `json:"paused_since"` // null: it is not paused
}

func resourceDocumentOf(r jobs.Resource) resourceDocument {
	return resourceDocument{r.Name, r.Queued, r.Later, r.Running, r.Dead, r.Limit, stated(r.Paused)}
}

type jobDocument struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`              // queued, running, dead; done, cancelled, discarded: what is kept of it
	Priority  int             `json:"priority,omitempty"` // 1 comes first; of a job in line
	Attempts  int             `json:"attempts"`
	Owner     string          `json:"owner,omitempty"`
	Token     int64           `json:"token,omitempty"`
	Enqueued  *time.Time      `json:"enqueued,omitempty"` // as far as the job tells
	Since     *time.Time      `json:"since,omitempty"`    // it runs, or lies in the dead letters
	Until     *time.Time      `json:"until,omitempty"`
	Expired   bool            `json:"expired,omitempty"`
	NotBefore *time.Time      `json:"not_before,omitempty"`
	Error     string          `json:"error,omitempty"`
	Value     json.RawMessage `json:"value,omitempty"`  // of dead letters
	Result    json.RawMessage `json:"result,omitempty"` // that is kept
}

func queuedDocument(j jobs.JobInfo, now time.Time) jobDocument {
	d := jobDocument{ID: j.ID, State: "queued", Priority: j.Priority, Attempts: j.Attempts, Error: j.Error, NotBefore: stated(j.NotBefore), Enqueued: stated(j.Enqueued), Since: stated(j.Since)}
	if j.Running {
		d.State, d.Owner, d.Token, d.Until, d.Expired = "running", j.Owner, j.Token, stated(j.Until), j.Until.Before(now)
	}
	return d
}

func deadDocument(j jobs.Dead[json.RawMessage]) jobDocument {
	return jobDocument{ID: j.ID, State: "dead", Attempts: j.Attempts, Error: j.Error, Value: j.Value, Enqueued: stated(j.Enqueued), Since: stated(j.Died)}
}

// keptDocument is what is kept of a job that has ended.
func keptDocument(s jobs.Status) jobDocument {
	d := jobDocument{ID: s.ID, State: string(s.State), Attempts: s.Attempts, Error: s.Error, Since: stated(s.Ended), Until: stated(s.Until)}
	_ = s.Result(&d.Result) // there may be none
	return d
}

// stands says how things are with a job.
func (d jobDocument) stands(now time.Time) string {
	switch {
	case d.State == "running" && d.Expired:
		return fmt.Sprintf("ran at %s until %s: expired, taken over by the next look", d.Owner, moment(*d.Until, now))
	case d.State == "running":
		return fmt.Sprintf("runs at %s until %s", d.Owner, moment(*d.Until, now))
	case d.NotBefore != nil && d.NotBefore.After(now):
		if d.Attempts == 0 {
			return "due at " + moment(*d.NotBefore, now)
		}
		return "failed or put off, due at " + moment(*d.NotBefore, now)
	case d.State == "queued":
		return "waits"
	case d.State != "dead":
		return fmt.Sprintf("%s at %s, kept until %s", d.State, moment(*d.Since, now), moment(*d.Until, now))
	case d.Since != nil:
		return "dead since " + moment(*d.Since, now)
	}
	return "dead"
}

type jobsListCommand struct {
	tableFlags
	Resource *string `arg:"" optional:"" help:"Resource whose jobs are listed."`
}

// Run implements the command.
func (cmd *jobsListCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	if cmd.Resource != nil { // one without a name, such as a script's empty variable, is refused
		return line(ctx, c, all, *cmd.Resource, cmd.Output)
	}
	now, list, rows := time.Now(), []resourceDocument{}, [][]string(nil)
	unread := collect(all.Resources(ctx), func(r jobs.Resource) {
		list = append(list, resourceDocumentOf(r))
		paused := ""
		if !r.Paused.IsZero() {
			paused = moment(r.Paused, now)
		}
		rows = append(rows, []string{r.Name, fmt.Sprint(r.Queued), fmt.Sprint(r.Later), fmt.Sprint(r.Running), fmt.Sprint(r.Limit), fmt.Sprint(r.Dead), paused})
	})
	if err := all.nothing(ctx, len(rows), unread); err != nil {
		return err
	}
	return c.printList(cmd.Output, list, []string{"resource", "queued", "later", "running", "limit", "dead", "paused since"}, rows, "no resource was ever used", unread)
}

func line(ctx context.Context, c *console, all *work, resource, output string) error {
	now, list := time.Now(), []jobDocument{}
	unread := collect(all.Jobs(ctx, resource), func(j jobs.JobInfo) { list = append(list, queuedDocument(j, now)) })
	if err := all.nothingOf(ctx, resource, len(list), unread); err != nil {
		return err
	}
	return c.printJobs(output, list, "no job stands in the line of "+resource, now, unread)
}

// usual is the priority of jobs of which nobody has said another.
const usual = 2

// printJobs has a column for priorities where there are any.
func (c *console) printJobs(output string, list []jobDocument, none string, now time.Time, unread error) error {
	head, rows := []string{"job", "state", "attempts", "error"}, [][]string(nil)
	levels := slices.ContainsFunc(list, jobDocument.unusual)
	for _, d := range list {
		row := []string{d.ID, d.stands(now), fmt.Sprint(d.Attempts), d.Error}
		if levels {
			row = slices.Insert(row, 2, fmt.Sprint(d.Priority))
		}
		rows = append(rows, row)
	}
	if levels {
		head = slices.Insert(head, 2, "priority")
	}
	return c.printList(output, list, head, rows, none, unread)
}

// unusual reports whether a job has a priority of its own.
func (d jobDocument) unusual() bool { return d.Priority != 0 && d.Priority != usual }

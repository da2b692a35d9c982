package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dynahold/dynahold/jobs"
)

// retime gives a job that waits another time.
func (f *jobFlags) retime(ctx context.Context, c *console, yes bool, what, question string, at func(now time.Time) (time.Time, error)) error {
	all, err := f.workToChange(ctx)
	if err != nil {
		return err
	}
	d, err := f.inLine(ctx, all)
	if err != nil {
		return err
	}
	now := time.Now()
	if d.State == "running" {
		return outcome{exitMoved, fmt.Errorf("job %q runs at %s, with token %d; nothing was changed", f.ID, d.Owner, d.Token)}
	}
	due, err := at(now)
	if err != nil {
		return err
	}
	facts := append(f.facts(d, now), [2]string{"new time", moment(due, now)})
	if !due.After(now) {
		if d.NotBefore == nil || !d.NotBefore.After(now) {
			return outcome{exitMoved, fmt.Errorf("job %q waits in line already, and would lose its place; nothing was changed", f.ID)}
		}
		facts[len(facts)-1][1] = "now"
	}
	return c.force(ctx, yes, f.Output, forced{
		facts: facts, question: question, gone: "somebody was quicker",
		act:  func() error { return all.Reschedule(ctx, f.Resource, f.ID, due) },
		done: what, name: f.ID, document: map[string]any{"id": f.ID, "before": d, "not_before": stated(due)},
	})
}

type jobsRunNowCommand struct {
	jobFlags
	consent
}

// Help says of what it is the end.
func (jobsRunNowCommand) Help() string {
	return `Puts a job that waits for its time, or failed and waits for its next attempt, at the end of the line at once; its attempts stay counted. It starts as soon as the resource has room.

Exit codes: 0 done; 1 failed, or not agreed to; 2 usage; 3 no such job in line; 4 it runs, waits in line already, or somebody was quicker.`
}

// Run implements the command.
func (cmd *jobsRunNowCommand) Run(ctx context.Context, c *console) error {
	return cmd.retime(ctx, c, cmd.Yes, "put in line", "Let it start now?", func(now time.Time) (time.Time, error) { return now, nil })
}

type jobsRescheduleCommand struct {
	jobFlags
	At time.Time     `placeholder:"TIME" xor:"when" help:"When it may start, like 2026-11-25T06:00:00Z."`
	In time.Duration `placeholder:"TIME" xor:"when" help:"In what time it may start, such as 90m."`
	consent
}

// AfterApply refuses what is no time.
func (cmd *jobsRescheduleCommand) AfterApply() error {
	if cmd.At.IsZero() == (cmd.In <= 0) {
		return errors.New("give a time: --at, or --in above 0")
	}
	return nil
}

// Help says which jobs can wait.
func (jobsRescheduleCommand) Help() string {
	return `Gives a job that waits another time, by the clock of this machine; also one that had none, or that failed and is to be tried again. Its attempts stay counted. A dead letter is requeued first.

Exit codes: 0 rescheduled; 1 failed, or not agreed to; 2 usage; 3 no such job in line; 4 it runs, or somebody was quicker.`
}

// Run implements the command.
func (cmd *jobsRescheduleCommand) Run(ctx context.Context, c *console) error {
	return cmd.retime(ctx, c, cmd.Yes, "rescheduled", "Give it this time?", func(now time.Time) (time.Time, error) {
		at := cmd.At
		if at.IsZero() {
			at = now.Add(cmd.In)
		}
		if !at.After(now) {
			return at, usage("--at %s has passed: see run-now", at.Format(time.RFC3339))
		}
		return at, nil
	})
}

type jobsSchedulesCommand struct{ tableFlags }

// Help says what a tick in the past means.
func (jobsSchedulesCommand) Help() string {
	return `Lists the schedules of periodic jobs (Queue.Periodic), also those that no program has any more. A next tick in the past has no job yet: no program with this schedule has looked since.`
}

type scheduleDocument struct {
	Name     string     `json:"name"`
	Schedule string     `json:"schedule"` // as Schedule.String says
	Last     *time.Time `json:"last"`     // null: no tick has had a job
	Next     *time.Time `json:"next"`
	Overdue  bool       `json:"overdue"` // its next tick has come
}

func scheduleDocumentOf(s jobs.ScheduleInfo, now time.Time) scheduleDocument {
	return scheduleDocument{s.Name, s.Spec, stated(s.Last), stated(s.Next), !s.Next.After(now)}
}

func (d scheduleDocument) lastTick(now time.Time) string {
	if d.Last == nil {
		return "none yet"
	}
	return moment(*d.Last, now)
}

// Run implements the command.
func (cmd *jobsSchedulesCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	now, list, rows := time.Now(), []scheduleDocument{}, [][]string(nil)
	unread := collect(all.Schedules(ctx), func(s jobs.ScheduleInfo) {
		d := scheduleDocumentOf(s, now)
		list, rows = append(list, d), append(rows, []string{s.Name, s.Spec, d.lastTick(now), moment(s.Next, now)})
	})
	if err := all.nothing(ctx, len(list), unread); err != nil {
		return err
	}
	return c.printList(cmd.Output, list, []string{"schedule", "when", "last tick", "next tick"}, rows, "no program has a periodic job", unread)
}

type jobsForgetScheduleCommand struct {
	tableFlags
	Name string `arg:"" help:"Name of the schedule, as schedules tells it."`
	consent
}

// Help says what it does where a program has it.
func (jobsForgetScheduleCommand) Help() string {
	return `Removes the schedule of a periodic job. A program that still has it makes it anew, and leaves out a tick that has come meanwhile. Jobs of its ticks stay.

Exit codes: 0 forgotten; 1 failed, or not agreed to; 2 usage; 3 no such schedule; 4 it has moved on meanwhile: some program has it.`
}

// Run implements the command.
func (cmd *jobsForgetScheduleCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.workToChange(ctx)
	if err != nil {
		return err
	}
	now, found := time.Now(), scheduleDocument{}
	unread := collect(all.Schedules(ctx), func(s jobs.ScheduleInfo) {
		if s.Name == cmd.Name {
			found = scheduleDocumentOf(s, now)
		}
	})
	facts := [][2]string{{"schedule", found.Name}, {"when", found.Schedule}, {"last tick", found.lastTick(now)}}
	switch {
	case found.Name != "":
		facts = append(facts, [2]string{"next tick", moment(*found.Next, now)})
	case unread != nil:
		return unread
	default:
		return outcome{exitNothing, fmt.Errorf("schedule %q is not in table %q", cmd.Name, cmd.Table)}
	}
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts: facts, question: "Forget it?", gone: "somebody was quicker",
		act: func() error {
			err := all.ForgetSchedule(ctx, cmd.Name)
			if errors.Is(err, jobs.ErrBusy) {
				return outcome{exitMoved, fmt.Errorf("%w; nothing was changed", err)}
			}
			return err
		},
		done: "forgotten", name: cmd.Name, document: found,
	})
}

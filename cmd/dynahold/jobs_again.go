package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dynahold/dynahold/repo"
)

// deadFlags name one dead letter, or many.
type deadFlags struct {
	resourceFlags
	ID        string        `arg:"" optional:"" help:"Id of the dead letter, as dead tells it."`
	All       bool          `help:"All dead letters of the resource, or those that --error and --older-than select."`
	Error     string        `placeholder:"TEXT" help:"With --all: only those whose error has this text."`
	OlderThan time.Duration `placeholder:"TIME" help:"With --all: only those that died longer ago, such as 24h; of whom that is not known is not among them."`
	DryRun    bool          `help:"With --all: list them, and change nothing."`
	consent
}

// AfterApply refuses flags that do not go together.
func (f *deadFlags) AfterApply() error {
	switch {
	case f.All == (f.ID != ""):
		return errors.New("give the id of a dead letter, or --all")
	case !f.All && (f.Error != "" || f.OlderThan != 0 || f.DryRun):
		return errors.New("--error, --older-than and --dry-run go with --all")
	case f.OlderThan < 0:
		return fmt.Errorf("--older-than %v: give a time above 0", f.OlderThan)
	}
	return nil
}

// one names the dead letter.
func (f *deadFlags) one() *jobFlags { return &jobFlags{f.resourceFlags, f.ID} }

// selects reports whether a dead letter is one of those.
func (f *deadFlags) selects(d jobDocument, now time.Time) bool {
	old := f.OlderThan == 0 || d.Since != nil && now.Sub(*d.Since) > f.OlderThan
	return old && strings.Contains(d.Error, f.Error)
}

// pick reads the dead letters that are selected. With broken come those, too, of which only
// the id can be read.
func (f *deadFlags) pick(ctx context.Context, all *work, broken bool, now time.Time) (list []jobDocument, unread error) {
	list = []jobDocument{}
	for j, err := range all.Dead(ctx, f.Resource) {
		if d := deadDocument(j); (err == nil || broken && j.ID != "") && f.selects(d, now) {
			list = append(list, d)
		} else if err != nil {
			unread = errors.Join(unread, err)
		}
	}
	return list, unread
}

// manyDone is what became of many.
type manyDone struct {
	Done []string `json:"done"`
	Gone []string `json:"gone"` // somebody was quicker
}

// many does something with all that are selected, one after the other.
func (f *deadFlags) many(ctx context.Context, c *console, all *work, what string, list []jobDocument, act func(id string) error) error {
	ended := manyDone{[]string{}, []string{}}
	var failed error
	for _, d := range list {
		err := act(d.ID)
		switch {
		case err == nil:
			ended.Done = append(ended.Done, d.ID)
			continue
		case errors.Is(err, repo.ErrNotFound), errors.Is(err, repo.ErrConflict):
			ended.Gone = append(ended.Gone, d.ID)
			continue
		}
		failed = fmt.Errorf("%s %d of %d, then %q failed: %w", what, len(ended.Done), len(list), d.ID, err)
		break
	}
	said := fmt.Sprintf("%d of %s", len(ended.Done), f.Resource)
	if len(ended.Gone) > 0 {
		said += fmt.Sprintf("; for %d somebody was quicker", len(ended.Gone))
	}
	return errors.Join(c.printDone(f.Output, what, said, ended), failed)
}

// run does something with one, or with many.
func (f *deadFlags) run(ctx context.Context, c *console, what, question string, broken bool, act func(*work, string) error, one func(*work) error) error {
	all, err := f.workToChange(ctx)
	if err != nil {
		return err
	}
	if !f.All {
		return one(all)
	}
	now := time.Now()
	list, unread := f.pick(ctx, all, broken, now)
	if err := all.nothingOf(ctx, f.Resource, len(list), unread); err != nil {
		return err
	}
	if f.DryRun || len(list) == 0 {
		return c.printJobs(f.Output, list, "no such dead letter of "+f.Resource, now, unread)
	}
	facts := [][2]string{{"resource", f.Resource}, {"dead letters", fmt.Sprint(len(list))}, {"the first", list[0].ID}, {"its error", list[0].Error}}
	if err := c.confirm(ctx, f.Yes, facts, question); err != nil {
		return err
	}
	return errors.Join(f.many(ctx, c, all, what, list, func(id string) error { return act(all, id) }), unread)
}

type jobsRequeueCommand struct{ deadFlags }

// Help says how many are meant.
func (jobsRequeueCommand) Help() string {
	return `Puts a dead letter at the end of its line, with all its attempts before it; with --all, after a question, all that the flags select. One whose value cannot be read is left where it is, and told.

Exit codes: 0 requeued; 1 failed, also after some of many, or not agreed to; 2 usage; 3 no such dead letter.`
}

// Run implements the command.
func (cmd *jobsRequeueCommand) Run(ctx context.Context, c *console) error {
	act := func(all *work, id string) error { return all.Requeue(ctx, cmd.Resource, id) }
	return cmd.run(ctx, c, "requeued", "Requeue them?", false, act, func(all *work) error {
		err := act(all, cmd.ID)
		switch {
		case errors.Is(err, repo.ErrNotFound):
			return cmd.one().missing("dead letter")
		case err != nil:
			return err
		}
		return c.printDone(cmd.Output, "requeued", cmd.ID, cmd.ID)
	})
}

type jobsDiscardCommand struct{ deadFlags }

// Help says how many are meant.
func (jobsDiscardCommand) Help() string {
	return `Shows a dead letter, asks, and removes it for good; with --all, all that the flags select.

Exit codes: 0 discarded; 1 failed, also after some of many, or not agreed to; 2 usage; 3 no such dead letter; 4 somebody was quicker.`
}

// Run implements the command.
func (cmd *jobsDiscardCommand) Run(ctx context.Context, c *console) error {
	act := func(all *work, id string) error { return all.Discard(ctx, cmd.Resource, id) }
	return cmd.run(ctx, c, "discarded", "Discard them?", true, act, func(all *work) error {
		f := cmd.one()
		d, err := f.dead(ctx, all)
		if d.ID == "" { // one whose value cannot be read is discarded, too
			return err
		}
		return c.force(ctx, cmd.Yes, cmd.Output, forced{
			facts: f.facts(d, time.Now()), question: "Discard it?", gone: "it was requeued or discarded meanwhile",
			act:  func() error { return act(all, cmd.ID) },
			done: "discarded", name: cmd.ID, document: cmd.ID,
		})
	})
}

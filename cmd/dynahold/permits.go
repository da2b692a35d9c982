package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/semaphore"
)

type permitCommands struct {
	List  permitsListCommand  `cmd:"" help:"List the permits of a resource that are held, or were held and not given back."`
	Break permitsBreakCommand `cmd:"" help:"End a permit by force: its holder learns it."`
}

type permitDocument struct {
	ID      string     `json:"id"`
	Holder  string     `json:"holder"` // "": the programs do not say (semaphore.Config.NamePermits)
	Since   *time.Time `json:"since"`
	Until   time.Time  `json:"until"`
	Expired bool       `json:"expired"`
}

func permitDocumentOf(p semaphore.PermitInfo, now time.Time) permitDocument {
	return permitDocument{ID: p.ID, Holder: p.Owner, Since: stated(p.Since), Until: p.Until.UTC(), Expired: p.Expired(now)}
}

type permitsListCommand struct {
	resourceFlags
}

// Run implements the command.
func (cmd *permitsListCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.work(ctx)
	if err != nil {
		return err
	}
	permits, err := all.permits.Permits(ctx, cmd.Resource)
	if err != nil {
		return err
	}
	now, list, rows := time.Now(), []permitDocument{}, [][]string(nil)
	for _, p := range permits {
		d := permitDocumentOf(p, now)
		list = append(list, d)
		rows = append(rows, []string{d.ID, shown.Holder(d.Holder, false), since(d.Since, now), ends(&d.Until, d.Expired, now)})
	}
	if err := all.nothingOf(ctx, cmd.Resource, len(list), nil); err != nil {
		return err
	}
	return c.printList(cmd.Output, list, []string{"permit", "holder", "since", "until"}, rows, "nobody holds a permit of "+cmd.Resource, nil)
}

type permitsBreakCommand struct {
	resourceFlags
	ID string `arg:"" help:"Id of the permit, as list tells it."`
	consent
}

// Help says what it does to whom.
func (permitsBreakCommand) Help() string {
	return `Shows whom it hits and since when, where the programs name their permits, asks, and ends this permit. Its holder learns it with its next renewal: its context ends, and its release is refused (ErrLockLost).

Exit codes: 0 broken; 1 failed, or not agreed to; 2 usage; 3 no such permit; 4 it ended meanwhile.`
}

// Run implements the command.
func (cmd *permitsBreakCommand) Run(ctx context.Context, c *console) error {
	all, err := cmd.workToChange(ctx)
	if err != nil {
		return err
	}
	permits, err := all.permits.Permits(ctx, cmd.Resource)
	if err != nil {
		return err
	}
	n := slices.IndexFunc(permits, func(p semaphore.PermitInfo) bool { return p.ID == cmd.ID })
	if n < 0 {
		return outcome{exitNothing, fmt.Errorf("resource %q has no permit %q", cmd.Resource, cmd.ID)}
	}
	now := time.Now()
	d := permitDocumentOf(permits[n], now)
	return c.force(ctx, cmd.Yes, cmd.Output, forced{
		facts:    [][2]string{{"permit", d.ID}, {"resource", cmd.Resource}, {"holder", shown.Holder(d.Holder, false)}, {"since", since(d.Since, now)}, {"until", ends(&d.Until, d.Expired, now)}},
		question: "Break it?", gone: "the permit ended meanwhile",
		act:  func() error { return all.permits.BreakPermit(ctx, cmd.Resource, cmd.ID) },
		done: "broken", name: cmd.ID, document: d,
	})
}

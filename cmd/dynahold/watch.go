package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/mutex"
)

type locksWatchCommand struct {
	awsFlags
	Table string        `arg:"" help:"Name or ARN of the table."`
	Every time.Duration `default:"2s" help:"Time between two looks. Each reads the whole table."`
}

// Help says what is seen, and what is not.
func (locksWatchCommand) Help() string {
	return `Looks at the whole table again and again: one read unit per 4 KB of the table for each look. A hold that begins and ends between two looks is not seen; of a lock that has changed hands between them, only the new hold is.

On a terminal it shows the locks that are held, until Ctrl-C, and leaves the screen as it was. In a pipe, or with -o json, it prints a line for each change: "held" for those that it finds at first, then "taken" and "ended". Exit code 0 after Ctrl-C.`
}

// changeDocument is a change of a lock, one a line.
type changeDocument struct {
	Time  time.Time    `json:"time"`  // of the look that has found it
	Event string       `json:"event"` // held, taken, ended
	Lock  lockDocument `json:"lock"`
}

// Run implements the command.
func (cmd *locksWatchCommand) Run(ctx context.Context, c *console) error {
	if cmd.Every < 100*time.Millisecond {
		return usageError{fmt.Sprintf("--every must be at least 100ms, not %v", cmd.Every)}
	}
	t, err := cmd.open(ctx, cmd.Table)
	if err != nil {
		return err
	}
	locker, err := t.locker()
	if err != nil {
		return err
	}
	show := cmd.lines(c)
	if c.outIsTerminal && cmd.Output != "json" {
		leave := c.enterScreen()
		defer leave()
		show = func(_, now []lockDocument, at time.Time) error { return cmd.draw(c, now, at) }
	}
	tick := time.NewTicker(cmd.Every)
	defer tick.Stop()
	var before []lockDocument
	for {
		at := time.Now()
		now, err := heldLocks(ctx, locker, at)
		if ctx.Err() != nil {
			return nil // somebody has seen enough
		}
		if err != nil {
			return err
		}
		if err := show(before, now, at); err != nil {
			return err
		}
		before = now
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// heldLocks are the locks of a table by name. Rows that cannot be read are no reason to
// stop watching: list tells them.
func heldLocks(ctx context.Context, locker *mutex.Locker, at time.Time) ([]lockDocument, error) {
	all, read := []lockDocument{}, false
	var last error
	for info, err := range locker.List(ctx) {
		if err != nil {
			last = err
			continue
		}
		read = true
		all = append(all, lockDocumentOf(info, at))
	}
	slices.SortFunc(all, func(a, b lockDocument) int { return strings.Compare(a.id(), b.id()) })
	if !read {
		return all, last
	}
	return all, nil
}

// id tells locks of one table apart.
func (d lockDocument) id() string { return d.Name + "\x00" + d.Sort }

// lines prints what has changed. The first look has changed nothing.
func (cmd *locksWatchCommand) lines(c *console) func(before, now []lockDocument, at time.Time) error {
	first := true
	return func(before, now []lockDocument, at time.Time) error {
		var all []changeDocument
		for _, d := range before {
			if !slices.ContainsFunc(now, d.sameHold) {
				all = append(all, changeDocument{at.UTC(), "ended", d})
			}
		}
		for _, d := range now {
			switch {
			case first:
				all = append(all, changeDocument{at.UTC(), "held", d})
			case !slices.ContainsFunc(before, d.sameHold):
				all = append(all, changeDocument{at.UTC(), "taken", d})
			}
		}
		first = false
		for _, e := range all {
			if err := cmd.line(c, e); err != nil {
				return err
			}
		}
		return nil
	}
}

func (d lockDocument) sameHold(o lockDocument) bool {
	return d.id() == o.id() && d.Token == o.Token && d.Holder == o.Holder
}

func (cmd *locksWatchCommand) line(c *console, e changeDocument) error {
	if cmd.Output == "json" {
		return json.NewEncoder(c.out).Encode(e)
	}
	_, err := fmt.Fprintf(c.out, "%s %-5s %s by %s, token %d\n", e.Time.Format(time.RFC3339), e.Event,
		printable(strings.TrimSpace(e.Lock.Name+" "+e.Lock.Sort)), printable(holder(e.Lock.Holder, false)), e.Lock.Token)
	return err
}

// What a terminal is told: the screen that it keeps beside its own, without a cursor; and
// to write over what is there, without a flicker.
const (
	screenOn, screenOff      = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
	home, endOfLine, restOff = "\x1b[H", "\x1b[K", "\x1b[J"
)

// enterScreen gives the view a screen of its own; leave gives the old one back.
func (c *console) enterScreen() (leave func()) {
	_, _ = fmt.Fprint(c.out, screenOn)
	return func() { _, _ = fmt.Fprint(c.out, screenOff) }
}

// draw writes the view over the one before.
func (cmd *locksWatchCommand) draw(c *console, locks []lockDocument, at time.Time) error {
	var text bytes.Buffer
	view := *c
	view.out = &text
	_, err := fmt.Fprintf(&text, "%s: %d locks at %s, every %v. Ctrl-C ends.\n\n", printable(cmd.Table), len(locks), at.UTC().Format(time.RFC3339), cmd.Every)
	rows := [][]string(nil)
	for _, d := range locks {
		rows = append(rows, []string{strings.TrimSpace(d.Name + " " + d.Sort), d.Holder, fmt.Sprint(d.Token), since(d.Since, at), d.ends(at)})
	}
	if len(rows) > 0 {
		err = errors.Join(err, view.printTable([]string{"lock", "holder", "token", "since", "until"}, rows))
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(c.out, home+strings.ReplaceAll(text.String(), "\n", endOfLine+"\r\n")+restOff)
	return err
}

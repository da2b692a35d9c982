package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/live"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
)

type locksWatchCommand struct {
	tableFlags
	Every  time.Duration `default:"2s" help:"Time between two looks. Each reads the whole table."`
	Record *string       `placeholder:"FILE" complete:"file" group:"output" help:"Also append what is seen to this file, for locks timeline."`
}

// Help says what is seen, and what is not.
func (locksWatchCommand) Help() string {
	return `Looks at the whole table again and again: one read unit per 4 KB of the table for each look. A hold that begins and ends between two looks is not seen; of a lock that has changed hands between them, only the new hold is.

On a terminal it shows the locks that are held, until q or Ctrl-C, and leaves the screen as it was. In a pipe, or with -o json, it prints a line for each change.

A look that fails after the first one is told, and the watch goes on. Exit code 0 after q or Ctrl-C; 3 where there is no such table, or it has gone.

` + record.Fields
}

// Validate refuses what makes no sense.
func (cmd *locksWatchCommand) Validate() error {
	if cmd.Every < 100*time.Millisecond {
		return fmt.Errorf("--every must be at least 100ms, not %v", cmd.Every)
	}
	return checkFile("--record", cmd.Record)
}

// Run implements the command.
func (cmd *locksWatchCommand) Run(ctx context.Context, c *console) (err error) {
	t, locker, err := cmd.locker(ctx)
	if err != nil {
		return err
	}
	w := &watcher{cmd: cmd, table: t, locker: locker, watch: record.NewWatch(cmd.Table, cmd.Every), lines: c.out, errs: c.err}
	if cmd.Record != nil {
		file, err := openRecord(*cmd.Record)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		w.file = file
	}
	if c.outIsTerminal && cmd.Output != "json" {
		w.lines, w.errs = nil, nil
		err = live.Run(ctx, live.Config{Out: c.out, Every: cmd.Every, Look: w.page})
	} else {
		err = w.follow(ctx)
	}
	if err != nil && ctx.Err() == nil {
		w.lines = nil
		return errors.Join(err, w.write(w.watch.Stop()))
	}
	return w.write(w.watch.Stop())
}

// openRecord opens a file to which a watch appends: what an earlier one has written is
// its part of the same timeline. Half a line of one that was killed gets an end.
func openRecord(path string) (*os.File, error) {
	file, err := os.OpenFile(kong.ExpandPath(path), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return nil, usage("--record: %v", err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = file.WriteString("\n")
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--record: %w", err), file.Close())
		}
	}
	return file, nil
}

// watcher looks at a table, and tells what has changed.
type watcher struct {
	cmd    *locksWatchCommand
	table  *opened
	locker *mutex.Locker
	watch  *record.Watch
	lines  io.Writer // nil: nobody reads lines
	errs   io.Writer // nil: faults are on the page
	file   io.Writer // nil: nothing is written down

	locks []record.Lock // as the last look that did not fail has seen them
	at    time.Time     // of that look; zero before the first one
	fault error         // of the latest look
}

// follow looks until ctx ends.
func (w *watcher) follow(ctx context.Context) error {
	tick := time.NewTicker(w.cmd.Every)
	defer tick.Stop()
	for {
		if err := w.look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look looks once. An error is one after which it makes no sense to look again: that of
// the first look, of a table that is gone, or of the output.
func (w *watcher) look(ctx context.Context) error {
	at := time.Now()
	now, err := heldLocks(ctx, w.locker, at)
	if err == nil && len(now) == 0 && w.at.IsZero() {
		err = w.table.noLocks(ctx)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		w.watch.Failed()
		if w.at.IsZero() || errors.Is(err, repo.ErrNoTable) {
			return err
		}
		if w.fault == nil && w.errs != nil {
			fmt.Fprintf(w.errs, "%s a look failed, and more may: %s\n", at.UTC().Format(time.RFC3339), shown.Lines(err.Error()))
		}
		w.fault = err
		return nil
	}
	if w.fault != nil && w.errs != nil {
		fmt.Fprintf(w.errs, "%s looks succeed again; the last one before was at %s\n", at.UTC().Format(time.RFC3339), w.at.UTC().Format(time.RFC3339))
	}
	w.locks, w.at, w.fault = now, at, nil
	return w.write(w.watch.Look(now, at))
}

// write tells events, all of a look at once.
func (w *watcher) write(events []record.Event) error {
	var documents, lines bytes.Buffer
	for _, e := range events {
		if err := shown.JSON(&documents, e, ""); err != nil {
			return err
		}
		if e.Lock == nil {
			continue
		}
		fmt.Fprintf(&lines, "%s %-5s %s by %s, token %d\n", e.Time.Format(time.RFC3339), e.Event,
			shown.Text(strings.TrimSpace(e.Lock.Name+" "+e.Lock.Sort)), shown.Text(shown.Holder(e.Lock.Holder, e.Lock.Handed)), e.Lock.Token)
	}
	if w.file != nil && documents.Len() > 0 {
		if _, err := w.file.Write(documents.Bytes()); err != nil {
			return fmt.Errorf("--record: %w", err)
		}
	}
	if w.cmd.Output == "json" {
		lines = documents
	}
	if w.lines == nil || lines.Len() == 0 {
		return nil
	}
	_, err := w.lines.Write(lines.Bytes())
	return err
}

// page looks once, for the view.
func (w *watcher) page(ctx context.Context) (p live.Page, err error) {
	if err := w.look(ctx); err != nil {
		return p, err
	}
	p.Title = fmt.Sprintf("%s: %d locks at %s, every %v.", shown.Text(w.cmd.Table), len(w.locks), w.at.UTC().Format(time.RFC3339), w.cmd.Every)
	if w.fault != nil {
		p.Fault = "THE LATEST LOOK FAILED: " + shown.Text(w.fault.Error())
	}
	if len(w.locks) == 0 {
		return p, nil
	}
	rows := [][]string(nil)
	for _, d := range w.locks {
		rows = append(rows, lockRow(d, w.at))
	}
	p.Lines, p.Head = strings.Split(strings.TrimSuffix(tableText(lockHead, rows), "\n"), "\n"), 2
	return p, nil
}

// heldLocks are the locks of a table by name. Rows that cannot be read are no reason to
// stop watching: list tells them. A scan that was not completed has seen nothing: what it
// did not reach would count as ended.
func heldLocks(ctx context.Context, locker *mutex.Locker, at time.Time) ([]record.Lock, error) {
	all := []record.Lock{}
	for info, err := range locker.List(ctx) {
		switch {
		case errors.Is(err, repo.ErrSchema):
		case err != nil:
			return nil, err
		default:
			all = append(all, lockDocumentOf(info, at))
		}
	}
	slices.SortFunc(all, record.Compare)
	return all, nil
}

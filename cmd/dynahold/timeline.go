package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/alecthomas/kong"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/record"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/timeline"
)

type locksTimelineCommand struct {
	Files  []string  `arg:"" name:"file" complete:"file" help:"Records that locks watch has written (--record FILE, or -o json); \"-\" reads standard input. Several are one timeline."`
	Lock   []string  `placeholder:"NAME" help:"Only this lock; * stands for anything. May be given again."`
	From   time.Time `placeholder:"TIME" help:"Only from this time on, like 2026-11-22T03:00:00Z."`
	To     time.Time `placeholder:"TIME" help:"Only until this time."`
	Output string    `short:"o" enum:"table,json" default:"table" group:"output" help:"What to print: table or json."`
	HTML   *string   `name:"html" placeholder:"FILE" complete:"file" group:"output" help:"Write a page for a browser, one file that stands by itself, in place of the table."`
}

// Help says what a timeline knows.
func (locksTimelineCommand) Help() string {
	return `Makes a timeline of what locks watch has written down: who held which lock when, with which token, and who lost it. It reads files only, no table.

A hold is known only at looks: it began and ended between two of them, and one that did both between two looks is not there. Whether a hold was given back or ended by somebody else (takeover, break) is known where the lock's next holder was seen, whose row tells the newest token that was lost; else "given back or broken" is all that is known. Times without looks are told.

Examples:

  dynahold locks watch orders --record night.jsonl
  dynahold locks timeline night.jsonl
  dynahold locks timeline night.jsonl --html night.html

` + timeline.Fields + `
Exit codes: 0 ok; 1 a file cannot be read or written; 2 usage; 3 a file is not there, or has no look.`
}

// Validate refuses what makes no sense.
func (cmd *locksTimelineCommand) Validate() error {
	if !cmd.From.IsZero() && !cmd.To.IsZero() && !cmd.To.After(cmd.From) {
		return errors.New("--to must be after --from")
	}
	for _, pattern := range cmd.Lock {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("--lock: %q is no pattern: write \\[ for a bracket", pattern)
		}
	}
	return checkFile("--html", cmd.HTML)
}

// Run implements the command.
func (cmd *locksTimelineCommand) Run(c *console) error {
	report, err := openReport(cmd.HTML)
	if err != nil {
		return err
	}
	defer report.discard()
	var records [][]record.Event
	looks := 0
	for _, name := range cmd.Files {
		if report.replaces(kong.ExpandPath(name)) {
			return usage("--html: %s is a record, of which the page is made: it would be gone", name)
		}
		events, err := readFile(name, record.Read)
		if err != nil {
			return err
		}
		records = append(records, events)
		looks += len(events)
	}
	if looks == 0 {
		return outcome{exitNothing, errors.New("the record has no look: nothing was watched")}
	}
	t := timeline.Build(records...)
	if cmd.From.After(t.To) || !cmd.To.IsZero() && cmd.To.Before(t.From) {
		return usage("the record is from %s to %s", t.From.Format(time.RFC3339), t.To.Format(time.RFC3339))
	}
	t = t.Only(cmd.Lock).Cut(cmd.From, cmd.To)
	if cmd.HTML != nil {
		if err := report.write(func(w io.Writer) error { return t.HTML(w, versionOfTool()) }); err != nil {
			return err
		}
		fmt.Fprintln(c.err, "page:", report.path)
		if cmd.Output == "table" {
			return nil
		}
	}
	if cmd.Output == "json" {
		return c.printJSON(t)
	}
	text := "nobody held a lock\n"
	if rows := t.Rows(); len(rows) > 0 {
		text = tableText(timeline.Head(), rows)
	}
	for _, note := range t.Notes() {
		text += shown.Text(note) + "\n"
	}
	return c.print(text)
}

// readFile has a file read by what knows its form; "-" is what is piped in.
func readFile[T any](name string, read func(in io.Reader, name string) (T, error)) (content T, err error) {
	if name == "-" {
		return read(os.Stdin, "standard input")
	}
	file, err := os.Open(kong.ExpandPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return content, outcome{exitNothing, fmt.Errorf("there is no file %s", name)}
	}
	if err != nil {
		return content, err
	}
	defer func() { _ = file.Close() }()
	return read(file, name)
}

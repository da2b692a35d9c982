package main

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/grid"
	"github.com/dynahold/dynahold/cmd/dynahold/internal/shown"
)

// printJSON writes a document. Times are RFC 3339, in UTC.
func (c *console) printJSON(document any) error {
	return shown.JSON(c.out, document, "  ")
}

// print writes a text.
func (c *console) print(text string) error {
	_, err := io.WriteString(c.out, text)
	return err
}

// tableText is rows under a head.
func tableText(head []string, rows [][]string) string {
	t := grid.Table("  ")
	line := func(cells []string) (row table.Row) {
		for _, cell := range cells {
			row = append(row, shown.Text(cell))
		}
		return row
	}
	t.AppendHeader(line(head))
	for _, row := range rows {
		t.AppendRow(line(row))
	}
	return t.Render() + "\n"
}

// collect hands on what an iteration reads, and returns what could not be read.
func collect[T any](all iter.Seq2[T, error], each func(T)) error {
	var unread []error
	for one, err := range all {
		if err != nil {
			unread = append(unread, err)
			continue
		}
		each(one)
	}
	return errors.Join(unread...)
}

// printList prints what was read. That there is none is known only where all was.
func (c *console) printList(output string, list any, head []string, rows [][]string, none string, unread error) (err error) {
	switch {
	case len(rows) == 0 && unread != nil:
	case output == "json":
		err = c.printJSON(list)
	case len(rows) == 0:
		err = c.print(shown.Text(none) + "\n")
	default:
		err = c.print(tableText(head, rows))
	}
	return errors.Join(unread, err)
}

// factsText is what is known of one thing, a line for each fact.
func factsText(facts [][2]string) string {
	wide, text := 0, ""
	for _, f := range facts {
		wide = max(wide, len(f[0]))
	}
	for _, f := range facts {
		text += fmt.Sprintf("%-*s  %s\n", wide, f[0], shown.Text(f[1]))
	}
	return text
}

// moment is a time, and how far it is from now.
func moment(at, now time.Time) string {
	if at.After(now) {
		return fmt.Sprintf("%s (in %v)", at.UTC().Format(time.RFC3339), at.Sub(now).Round(time.Second))
	}
	return fmt.Sprintf("%s (%v ago)", at.UTC().Format(time.RFC3339), now.Sub(at).Round(time.Second))
}

// since is a time in the past that may not be known.
func since(at *time.Time, now time.Time) string {
	if at == nil {
		return "not known"
	}
	return moment(*at, now)
}

// stated is a time of a JSON document; nil for none.
func stated(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/grid"
)

// printJSON writes a document. Times are RFC 3339, in UTC.
func (c *console) printJSON(document any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(document)
}

// printTable writes rows under a head.
func (c *console) printTable(head []string, rows [][]string) error {
	t := grid.Table("  ")
	line := func(cells []string) (row table.Row) {
		for _, cell := range cells {
			row = append(row, printable(cell))
		}
		return row
	}
	t.AppendHeader(line(head))
	for _, row := range rows {
		t.AppendRow(line(row))
	}
	_, err := fmt.Fprintln(c.out, t.Render())
	return err
}

// printFacts writes what is known of one thing, a line for each fact.
func (c *console) printFacts(facts [][2]string) error {
	wide := 0
	for _, f := range facts {
		wide = max(wide, len(f[0]))
	}
	for _, f := range facts {
		if _, err := fmt.Fprintf(c.out, "%-*s  %s\n", wide, f[0], printable(f[1])); err != nil {
			return err
		}
	}
	return nil
}

// printable is a text from a table as a terminal may have it: others have
// written it, and control characters would be commands.
func printable(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// moment is a time, and how far it is from now.
func moment(at, now time.Time) string {
	away := at.Sub(now).Round(time.Second)
	if away < 0 {
		return fmt.Sprintf("%s (%v ago)", at.UTC().Format(time.RFC3339), -away)
	}
	return fmt.Sprintf("%s (in %v)", at.UTC().Format(time.RFC3339), away)
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

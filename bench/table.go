package main

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// columns are the names of what is told of a contender.
var columns = table.Row{"scenario", "contender", "changes/s", "× first", "× best peer", "requests", "wasted", "write units", "read units", "p50 ms", "p99 ms", "Jain", "failed", "lost", "changes/s, range", "p99 ms, range"}

// row is what is told of one contender.
func row(r result) table.Row {
	return table.Row{
		r.Scenario, r.Contender, figures(r.Rate), ratio(r.Ratio), ratio(r.Best),
		figures(r.Requests), figures(r.Wasted), figures(r.WriteUnits), figures(r.ReadUnits),
		milliseconds(r.P50), milliseconds(r.P99), strconv.FormatFloat(r.Jain, 'f', 2, 64), r.Failed, wrong(r),
		r.Spread.rates(), r.Spread.tails(),
	}
}

// separated are the results for a file, every row with its scenario.
func separated(results []result) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	write := func(cells table.Row) {
		texts := make([]string, len(cells))
		for i, cell := range cells {
			texts[i] = fmt.Sprint(cell)
		}
		_ = w.Write(texts) // to memory
	}
	write(columns)
	for _, r := range results {
		write(row(r))
	}
	w.Flush()
	return b.String()
}

// tabulate makes one table of all scenarios, for the terminal.
func tabulate(results []result) table.Writer {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(columns)
	var aligned []table.ColumnConfig
	for n := 3; n <= len(columns); n++ {
		aligned = append(aligned, table.ColumnConfig{Number: n, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	t.SetColumnConfigs(aligned)
	before := ""
	for _, r := range results {
		cells := row(r)
		if r.Scenario == before {
			cells[0] = "" // once for its rows
		} else if before != "" {
			t.AppendSeparator()
		}
		before = r.Scenario
		t.AppendRow(cells)
	}
	return t
}

// figures shows three significant ones, so that small costs can be told apart
// and large rates are not more precise than they are.
func figures(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x >= 100:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case x >= 10:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case x >= 1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'f', 3, 64)
}

func ratio(x float64) string {
	if x == 0 {
		return "" // the first contender was not run, or got nowhere
	}
	return figures(x)
}

func milliseconds(d time.Duration) string { return figures(inMilliseconds(d)) }

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// wrong is the column of lost changes, with those that were made unasked.
func wrong(r result) string {
	text := strconv.Itoa(r.Lost)
	if r.Extra > 0 {
		text += fmt.Sprintf(", %d extra", r.Extra)
	}
	if r.Imbalance != 0 {
		text += fmt.Sprintf(", balances %+d", r.Imbalance)
	}
	return text
}

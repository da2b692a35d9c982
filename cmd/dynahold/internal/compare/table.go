package compare

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// column of the table, of the terminal and of the page.
type column struct {
	head  string // two lines
	value func(Report, Mode) string
	// detail is left out where a terminal is too narrow.
	detail bool
}

const modeHead = "\nmode"

var columns = []column{
	{head: "\n#", value: func(r Report, m Mode) string { return place(r.rank(m.Name)) }},
	{head: modeHead, value: func(_ Report, m Mode) string { return m.Name }},
	{head: "changes\n/s", value: func(_ Report, m Mode) string { return rate(m.Rate) }},
	limitColumn,
	{head: "requests\n/change", value: func(_ Report, m Mode) string { return units(m.Requests) }, detail: true},
	{head: "write\nunits", value: func(_ Report, m Mode) string { return units(m.WriteUnits) }, detail: true},
	{head: "read\nunits", value: func(_ Report, m Mode) string { return units(m.ReadUnits) }, detail: true},
	{head: "USD per\nmillion", value: func(_ Report, m Mode) string { return usd(m.Cost)[1:] }},
	{head: "p50\nms", value: func(_ Report, m Mode) string { return units(ms(m.P50)) }, detail: true},
	{head: "p99\nms", value: func(_ Report, m Mode) string { return units(ms(m.P99)) }},
	{head: "fair-\nness", value: func(_ Report, m Mode) string { return fmt.Sprintf("%.2f", m.Jain) }},
	{head: "\nfailed", value: func(_ Report, m Mode) string { return strconv.Itoa(m.Failed) }},
	{head: "\nlost", value: func(_ Report, m Mode) string { return lost(m) }},
}

// limitColumn is shown where DynamoDB would hold somebody up.
var limitColumn = column{head: "limit\n/s", value: func(_ Report, m Mode) string { return rate(m.PartitionMax) }}

func place(rank int) string {
	if rank == 0 {
		return "-"
	}
	return strconv.Itoa(rank)
}

func lost(m Mode) string {
	if m.Extra > 0 {
		return fmt.Sprintf("%d, %d extra", m.Lost, m.Extra)
	}
	return strconv.Itoa(m.Lost)
}

// columns of this report.
func (r Report) columns() []column {
	return slices.DeleteFunc(slices.Clone(columns), func(c column) bool { return c.head == limitColumn.head && !r.limited() })
}

// limited tells whether a mode was faster than DynamoDB allows.
func (r Report) limited() bool {
	for _, m := range r.Modes {
		if m.Rate > m.PartitionMax {
			return true
		}
	}
	return false
}

// Table writes the figures and the advice as text. Only a terminal gets bold
// letters, and a table that is cut to its width.
func (r Report) Table(w io.Writer, width int, terminal bool) error {
	heading := fmt.Sprint
	columns := r.columns()
	gap := "  "
	if terminal {
		heading = text.Bold.Sprint
		if text.LongestLineLen(r.figures(columns, gap, false)) > width {
			columns = slices.DeleteFunc(columns, func(c column) bool { return c.detail })
			gap = " "
		}
	}
	var b strings.Builder
	paragraphs := func(bullet string, list ...string) {
		for _, s := range list {
			b.WriteString(indent(s, bullet, width))
		}
	}
	paragraphs("", r.title())
	b.WriteString("\n" + r.figures(columns, gap, terminal) + "\n\n")
	if len(columns) < len(r.columns()) {
		paragraphs("", "More columns in a wider terminal, by --html, and by -o json.")
	}
	paragraphs("", r.legend()...)
	b.WriteString("\nOnce more:\n\n    " + r.Settings.Command() + "\n\n") // in one line, for who copies it

	a := r.Advice
	if a.Choice != "" {
		b.WriteString(heading("Recommendation: "+a.Choice) + "\n\n    " + a.Code + "\n\n")
	} else {
		b.WriteString(heading("No recommendation") + "\n\n")
	}
	paragraphs("- ", a.Reasons...)
	if a.RunnerUp != "" {
		b.WriteString("\n")
		paragraphs("", "Runner-up: "+a.RunnerUp+". "+r.runnerUp())
	}
	if len(a.Notes) > 0 {
		b.WriteString("\n")
		paragraphs("- ", a.Notes...)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) figures(columns []column, gap string, bold bool) string {
	t := table.NewWriter()
	style := table.StyleLight
	style.Options = table.OptionsNoBordersAndSeparators
	style.Options.SeparateHeader, style.Options.SeparateColumns = true, true
	style.Format.Header = text.FormatDefault
	style.Box.PaddingLeft, style.Box.PaddingRight = "", ""
	style.Box.MiddleVertical, style.Box.MiddleSeparator = gap, strings.Repeat("─", len(gap))
	t.SetStyle(style)
	t.SuppressTrailingSpaces()

	var head table.Row
	var configs []table.ColumnConfig
	for i, c := range columns {
		head = append(head, c.head)
		if c.head != modeHead {
			configs = append(configs, table.ColumnConfig{Number: i + 1, Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, m := range r.byMerit() {
		var row table.Row
		for _, c := range columns {
			v := c.value(r, m)
			if bold && m.Name == r.Advice.Choice {
				v = text.Bold.Sprint(v)
			}
			row = append(row, v)
		}
		t.AppendRow(row)
	}
	return t.Render()
}

// indent wraps a paragraph; the bullet starts its first line.
func indent(s, bullet string, width int) string {
	lines := strings.Split(text.WrapSoft(s, width-len(bullet)), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return bullet + strings.Join(lines, "\n"+strings.Repeat(" ", len(bullet))) + "\n"
}

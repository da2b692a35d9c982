package compare

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/grid"
)

// column of the table, of the terminal and of the page.
type column struct {
	head  string // two lines
	value func(Report, Mode) string
	// spare columns are left out where the table is too wide: those with the
	// larger number first, 0 never.
	spare int
}

const (
	modeHead = "\nmode"
	rateHead = "changes\n/s"
)

var columns = []column{
	{head: "\n#", spare: 3, value: func(r Report, m Mode) string { return place(r.rank(m.Name)) }},
	{head: modeHead, value: func(_ Report, m Mode) string { return m.Name }},
	{head: rateHead, value: func(_ Report, m Mode) string { return told(rate(m.Rate), true, m.RateSpread) }},
	limitColumn,
	{head: "requests\n/change", spare: 8, value: func(_ Report, m Mode) string { return told(figure(m.Requests), m.Changes > 0, 0) }},
	{head: "write\nunits", spare: 7, value: func(_ Report, m Mode) string { return told(figure(m.WriteUnits), m.Changes > 0, 0) }},
	{head: "read\nunits", spare: 7, value: func(_ Report, m Mode) string { return told(figure(m.ReadUnits), m.Changes > 0, 0) }},
	{head: "USD per\nmillion", spare: 1, value: func(_ Report, m Mode) string { return told(usd(m.Cost)[1:], m.Changes > 0, m.CostSpread) }},
	{head: "p50\nms", spare: 9, value: func(_ Report, m Mode) string { return told(figure(ms(m.P50)), m.P99 > 0, 0) }},
	{head: "p99\nms", value: func(_ Report, m Mode) string { return told(figure(ms(m.P99)), m.P99 > 0, m.P99Spread) }},
	{head: "fair-\nness", spare: 2, value: func(r Report, m Mode) string {
		return told(fmt.Sprintf("%.2f", m.Jain), m.Changes > 0 && m.fairnessKnown(r.Settings), m.JainSpread)
	}},
	{head: "\nfailed", spare: 4, value: func(_ Report, m Mode) string { return strconv.Itoa(m.Failed) }},
	{head: "\nlost", spare: 4, value: func(_ Report, m Mode) string { return lost(m) }},
}

// told is a figure as the table shows it: a dash where there is none, marked
// where the rounds are far apart.
func told(figure string, known bool, spread float64) string {
	switch {
	case !known:
		return "–"
	case spread > mostNoise:
		return "~" + figure
	}
	return figure
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

// columns of this report. That nothing failed or was lost needs no columns
// where there is no room.
func (r Report) columns() (list []column) {
	faulty := slices.ContainsFunc(r.Modes, func(m Mode) bool { return m.Failed+m.Lost+m.Extra > 0 })
	for _, c := range columns {
		if c.head == limitColumn.head && !r.limited() {
			continue
		}
		if faulty && (c.head == "\nfailed" || c.head == "\nlost") {
			c.spare = 0
		}
		list = append(list, c)
	}
	return list
}

// fitting are those of the columns for which there is room, and what to put
// between them.
func (r Report) fitting(width int) (list []column, gap string) {
	list, gap = r.columns(), "  "
	for text.LongestLineLen(r.figures(list, gap, false)) > width {
		if gap != " " {
			gap = " "
			continue
		}
		var left bool
		if list, left = withoutSpare(list); !left {
			break
		}
	}
	return list, gap
}

// withoutSpare leaves out the columns that are most to spare; false: there is none.
func withoutSpare(list []column) ([]column, bool) {
	most := slices.MaxFunc(list, func(a, b column) int { return cmp.Compare(a.spare, b.spare) }).spare
	if most == 0 {
		return list, false
	}
	return slices.DeleteFunc(list, func(c column) bool { return c.spare == most }), true
}

// sheet is text of a width. Only a terminal gets bold letters.
type sheet struct {
	strings.Builder

	width    int
	terminal bool
}

func (s *sheet) heading(line string) string {
	if s.terminal {
		return text.Bold.Sprint(line)
	}
	return line
}

func (s *sheet) paragraphs(bullet string, list ...string) {
	for _, one := range list {
		s.WriteString(indent(one, bullet, s.width))
	}
}

// limited tells whether a mode was faster than DynamoDB allows.
func (r Report) limited() bool { return slices.ContainsFunc(r.Modes, Mode.capped) }

// Table writes the figures and the advice as text.
func (r Report) Table(w io.Writer, width int, terminal bool) error {
	columns, gap := r.fitting(width)
	b := sheet{width: width, terminal: terminal}
	b.paragraphs("", r.title())
	b.WriteString("\n" + r.figures(columns, gap, terminal) + "\n\n")
	if len(columns) < len(r.columns()) {
		b.paragraphs("", "More columns in a wider terminal, by --html, and by -o json.")
	}
	b.paragraphs("", r.legend()...)
	b.WriteString("\nOnce more:\n\n    " + r.Settings.Command() + "\n\n") // in one line, for who copies it

	a := r.Advice
	if a.Choice != "" {
		b.WriteString(b.heading("Recommendation: "+a.Choice) + "\n\n    " + a.Code + "\n\n")
	} else {
		b.WriteString(b.heading("No recommendation") + "\n\n")
	}
	b.paragraphs("- ", a.Reasons...)
	if a.RunnerUp != "" {
		b.WriteString("\n")
		b.paragraphs("", "Runner-up: "+a.RunnerUp+". "+r.runnerUp())
	}
	if len(a.Notes) > 0 {
		b.WriteString("\n")
		b.paragraphs("- ", a.Notes...)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Report) figures(columns []column, gap string, bold bool) string {
	t := grid.Table(gap)
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

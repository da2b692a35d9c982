package compare

import (
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/grid"
)

// besideEachOther are the columns that each world has in the table of both: what ranks,
// and what rules out.
var besideEachOther = []string{"\n#", rateHead, limitColumn.head, "USD per\nmillion", "p99\nms", "fair-\nness"}

// Table writes what was found as text: of two worlds one table, and one verdict.
func (f Findings) Table(w io.Writer, width int, terminal bool) error {
	if len(f.Worlds) == 1 {
		return f.Worlds[0].Table(w, width, terminal)
	}
	b := sheet{width: width, terminal: terminal}
	first := f.Worlds[0]
	b.paragraphs("", first.title()+" where it is even, p99 "+FormatTime(f.Worlds[1].Settings.Workload.Latency.P99)+" where it is uneven")
	if f.Verdict.Mode != "" {
		b.WriteString("\n" + b.heading("Recommendation: "+f.Verdict.Mode) + "\n\n    " + f.Verdict.Code + "\n\n")
	} else {
		b.WriteString("\n" + b.heading("No recommendation") + "\n\n")
	}
	b.paragraphs("- ", f.advice()...)
	b.WriteString("\n" + f.figures(width, terminal) + "\n\n")
	b.paragraphs("- ", f.notes()...)
	b.WriteString("\n")
	b.paragraphs("", f.merged().legend()...)
	b.paragraphs("", "More about one world by its --p99; about both by --html and -o json.")
	b.WriteString("\nOnce more:\n\n    " + first.Settings.Command() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// notes are those of both worlds, and who is out of the question in one of them.
func (f Findings) notes() []string {
	list := f.common(func(a Advice) []string { return a.Notes })
	if slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, "Not in question: ") }) {
		return list
	}
	add := func(where string, m Measured, out map[string]string) {
		if text := excluded(m, out); text != "" {
			list = append(list, "Not in question"+where+": "+text+".")
		}
	}
	add("", Measured{Skipped: f.Worlds[0].Skipped}, nil)
	for _, r := range f.Worlds {
		add(" where latency is "+r.Settings.World, Measured{Modes: r.Modes}, r.Advice.Out)
	}
	return list
}

// merged is a report of all worlds, for what is said of all of them at once.
func (f Findings) merged() Report {
	all := f.Worlds[0]
	all.Modes = nil
	for _, r := range f.Worlds {
		all.Modes = append(all.Modes, r.Modes...)
		all.Rounds = min(all.Rounds, r.Rounds)
	}
	return all
}

// figures are the table of both worlds, with as many columns as there is room for.
func (f Findings) figures(width int, bold bool) string {
	var list []column
	for _, c := range f.merged().columns() {
		if slices.Contains(besideEachOther, c.head) {
			list = append(list, c)
		}
	}
	for text.LongestLineLen(f.draw(list, false)) > width {
		var left bool
		if list, left = withoutSpare(list); !left {
			break
		}
	}
	return f.draw(list, bold)
}

// draw the columns of each world, side by side, below the name of the world.
func (f Findings) draw(columns []column, bold bool) string {
	t := grid.Table(" ")
	head := table.Row{"\n" + modeHead}
	var configs []table.ColumnConfig
	for _, r := range f.Worlds {
		for _, c := range columns {
			above := ""
			if c.head == rateHead {
				above = r.Settings.World
			}
			head = append(head, above+"\n"+c.head)
			configs = append(configs, table.ColumnConfig{Number: len(head), Align: text.AlignRight, AlignHeader: text.AlignRight})
		}
	}
	t.AppendHeader(head)
	t.SetColumnConfigs(configs)
	for _, m := range f.Worlds[0].byMerit() {
		row := table.Row{m.Name}
		for _, r := range f.Worlds {
			here, _ := find(r.Modes, m.Name)
			for _, c := range columns {
				row = append(row, c.value(r, here))
			}
		}
		if bold && m.Name == f.Verdict.Mode {
			for i, v := range row {
				row[i] = text.Bold.Sprint(v)
			}
		}
		t.AppendRow(row)
	}
	return t.Render()
}

package compare

import (
	_ "embed"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var pageSource string

// flowing is a column's heading as the browser may break it.
func flowing(head string) string {
	return strings.ReplaceAll(strings.ReplaceAll(strings.TrimSpace(head), "-\n", ""), "\n", " ")
}

var pageTemplate = template.Must(template.New("report").Parse(pageSource))

type page struct {
	Title    string
	Advice   Advice
	RunnerUp string
	Heads    []string
	Rows     []row
	Charts   []figure
	Legend   []string
	Command  string
}

type row struct {
	Class string // for the style: best, absent, or nothing
	Cells []string
	Why   string // it is out of the question
}

type figure struct {
	Title string
	SVG   template.HTML
}

// HTML writes a page that stands by itself: no script, and nothing that is
// loaded from elsewhere. It is well-formed XML too.
func (r Report) HTML(w io.Writer) error {
	p := page{
		Title: r.title(), Advice: r.Advice, RunnerUp: r.runnerUp(),
		Legend: r.legend(), Command: r.Settings.Command(),
	}
	for _, c := range r.columns() {
		p.Heads = append(p.Heads, flowing(c.head))
	}
	for _, m := range r.byMerit() {
		line := row{Why: r.Advice.Out[m.Name]}
		switch {
		case m.Name == r.Advice.Choice:
			line.Class = "best"
		case line.Why != "":
			line.Class = "absent"
		}
		for _, c := range r.columns() {
			line.Cells = append(line.Cells, c.value(r, m))
		}
		p.Rows = append(p.Rows, line)
	}
	for _, c := range charts {
		svg, err := c.svg(r)
		if err != nil {
			return err
		}
		p.Charts = append(p.Charts, figure{c.Title, svg})
	}
	return pageTemplate.Execute(w, p)
}

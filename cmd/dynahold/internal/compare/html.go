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
	World    string // empty: the only one
	Advice   Advice
	RunnerUp string
	Heads    []string
	Rows     []row
	Charts   []drawing
	Legend   []string
	Command  string
}

type row struct {
	Class string // for the style: best, absent, or nothing
	Cells []cell
}

type cell struct {
	Text   string
	IsName bool   // of the mode: the heading of its row
	Why    string // below the name: why the mode is out of the question
}

type drawing struct {
	Title string
	SVG   template.HTML
}

// HTML writes a page that stands by itself: no script, and nothing that is
// loaded from elsewhere. It is well-formed XML too.
func (f Findings) HTML(w io.Writer) error {
	all := struct {
		Title  string
		Code   string
		Mode   string
		Advice []string
		Worlds []page
	}{Title: f.Worlds[0].title(), Mode: f.Verdict.Mode, Code: f.Verdict.Code}
	if len(f.Worlds) > 1 {
		all.Advice = f.advice()
	}
	for _, r := range f.Worlds {
		p, err := r.page()
		if err != nil {
			return err
		}
		all.Worlds = append(all.Worlds, p)
	}
	return pageTemplate.Execute(w, all)
}

func (r Report) page() (page, error) {
	p := page{
		Title: r.title(), World: r.Settings.World, Advice: r.Advice, RunnerUp: r.runnerUp(),
		Legend: r.legend(), Command: r.Settings.Command(),
	}
	for _, c := range r.columns() {
		p.Heads = append(p.Heads, flowing(c.head))
	}
	for _, m := range r.byMerit() {
		why := r.Advice.Out[m.Name]
		var line row
		switch {
		case m.Name == r.Advice.Choice:
			line.Class = "best"
		case why != "":
			line.Class = "absent"
		}
		for _, c := range r.columns() {
			content := cell{Text: c.value(r, m), IsName: c.head == modeHead}
			if content.IsName {
				content.Why = why
			}
			line.Cells = append(line.Cells, content)
		}
		p.Rows = append(p.Rows, line)
	}
	for _, c := range charts {
		svg, err := c.svg(r)
		if err != nil {
			return page{}, err
		}
		p.Charts = append(p.Charts, drawing{c.Title, svg})
	}
	return p, nil
}

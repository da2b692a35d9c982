package compare

import (
	"bytes"
	"fmt"
	"html"
	"html/template"
	"image/color"
	"regexp"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Charts are drawn in these colours, which stand for variables of the page's
// style: so one drawing serves light and dark. None may be black, which the
// library leaves out as SVG's default.
var (
	inkColour    = color.RGBA{R: 1, A: 255}
	bestColour   = color.RGBA{R: 2, A: 255}
	otherColour  = color.RGBA{R: 3, A: 255}
	absentColour = color.RGBA{R: 4, A: 255}

	variables = strings.NewReplacer(
		"#010000", "var(--ink)",
		"#020000", "var(--best)",
		"#030000", "var(--other)",
		"#040000", "var(--absent)",
		// Arial has the same widths as the font that the text was set with.
		"font-family:Liberation Sans", "font-family:Liberation Sans,Arial,Helvetica,sans-serif",
	)
)

// chart is one measure of all modes, as bars.
type chart struct {
	Title string
	value func(Mode) float64
	label func(Mode) string
}

var charts = []chart{
	{"Changes per second, within the limit of a partition (more is better)", Mode.effectiveRate, func(m Mode) string { return rate(m.effectiveRate()) }},
	{"USD per million changes (less is better)", func(m Mode) float64 { return m.Cost }, func(m Mode) string { return told(usd(m.Cost), m.Changes > 0, 0) }},
	{"99th percentile of a change, at the measured rate (less is better)", func(m Mode) float64 { return m.P99.Seconds() }, func(m Mode) string { return told(latency(m.P99), m.P99 > 0, 0) }},
}

const (
	chartWidth = 460
	barWidth   = 13
	barStep    = 24
	fontSize   = 12
	labelRoom  = 1.2 // of the longest bar, for the figure beside it
)

// svg draws the chart as an element to be placed into a page.
func (c chart) svg(r Report) (template.HTML, error) {
	modes := r.byMerit()
	p := plot.New()
	p.BackgroundColor = nil
	p.HideX()
	p.X.Min = 0
	var names []string
	most := 0.0
	figures := plotter.XYLabels{}
	for i := range modes {
		m := modes[len(modes)-1-i] // bars are drawn from the bottom upwards
		bar, err := plotter.NewBarChart(plotter.Values{c.value(m)}, vg.Points(barWidth))
		if err != nil {
			return "", fmt.Errorf("chart of %s: %w", m.Name, err)
		}
		bar.Horizontal, bar.XMin, bar.LineStyle.Width = true, float64(i), 0
		bar.Color = r.colour(m)
		p.Add(bar)
		names = append(names, m.Name)
		most = max(most, c.value(m))
		figures.XYs = append(figures.XYs, plotter.XY{X: c.value(m), Y: float64(i)})
		figures.Labels = append(figures.Labels, c.label(m))
	}
	labels, err := plotter.NewLabels(figures)
	if err != nil {
		return "", err
	}
	for i := range labels.TextStyle {
		style(&labels.TextStyle[i])
		labels.TextStyle[i].YAlign = draw.YCenter
	}
	labels.Offset.X = vg.Points(4)
	p.Add(labels)
	p.NominalY(names...)
	p.X.Max = max(most*labelRoom, 1e-9)
	p.Y.Min, p.Y.Max = -0.7, float64(len(modes))-0.3
	p.Y.Color = inkColour
	style(&p.Y.Tick.Label)
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter

	canvas := vgsvg.NewWith(vgsvg.UseWH(vg.Points(chartWidth), vg.Points(float64(barStep*len(modes)))))
	p.Draw(draw.New(canvas))
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return "", err
	}
	_, element, _ := strings.Cut(b.String(), "<svg") // after the declaration, which a page must not have
	element = anchored(element, names, p.Y.Tick.Label)
	element = fmt.Sprintf(`<svg role="img" aria-label="%s"`, template.HTMLEscapeString(c.Title)) + variables.Replace(element)
	return template.HTML(element), nil // drawn here; names are escaped by the library
}

// anchored has the names beside the bars end where the bars begin, also where the browser's
// font is wider than the one that they were set with: the library says where they begin.
func anchored(element string, names []string, s text.Style) string {
	var edge vg.Length
	for _, name := range names {
		edge = max(edge, s.Width(name))
	}
	end := fmt.Sprintf(`<text x="%.5g" text-anchor="end"`, edge.Points())
	return texts.ReplaceAllStringFunc(element, func(found string) string {
		part := texts.FindStringSubmatch(found)
		if !slices.Contains(names, html.UnescapeString(part[2])) {
			return found // a figure
		}
		return end + part[1] + part[2] + "</text>"
	})
}

var texts = regexp.MustCompile(`<text x="[^"]*"([^>]*>)([^<]*)</text>`)

func style(s *text.Style) {
	s.Color = inkColour
	s.Font.Variant = "Sans"
	s.Font.Size = vg.Points(fontSize)
}

func (r Report) colour(m Mode) color.Color {
	switch {
	case m.Name == r.Advice.Choice:
		return bestColour
	case r.rank(m.Name) == 0:
		return absentColour
	}
	return otherColour
}

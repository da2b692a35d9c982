package main

import (
	"image/color"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// In points.
const (
	paneWidth  vg.Length = 300
	paneHeight vg.Length = 300
)

// steps are the results of a growth, and how far it has grown in each of them.
func (g *growth) steps(all []result) (some []result, at []float64) {
	names := map[string]int{}
	for _, s := range growing() {
		if s.in == g {
			names[s.name] = s.at
		}
	}
	for _, r := range all {
		if n, is := names[bare(r.Scenario)]; is {
			some, at = append(some, r), append(at, float64(n))
		}
	}
	return some, at
}

// lineChart draws the panes of a growth side by side, a line for each contender, as SVG;
// nil where none of its scenarios was run.
func lineChart(g *growth, all []result, short bool) ([]byte, error) {
	results, at := g.steps(all)
	if len(results) == 0 {
		return nil, nil
	}
	var names []string
	for _, r := range results {
		if !slices.Contains(names, r.Contender) {
			names = append(names, r.Contender)
		}
	}
	legend, colors := newLegend(), palette(names)
	panes := make([]*plot.Plot, len(g.panes))
	for i, what := range g.panes {
		p := newPlot(what.title)
		p.X.Label.Text = g.title
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, marks(at)
		lowest, highest := math.Inf(1), 0.0
		for n, name := range names {
			l := what.line(name, results, at)
			if len(l.XYs) == 0 {
				continue
			}
			drawn, err := l.draw(p, colors[n])
			if err != nil {
				return nil, err
			}
			if i == 0 {
				legend.Add(name, drawn...)
			}
			least, most := l.span()
			lowest, highest = min(lowest, least), max(highest, most)
		}
		if highest == 0 {
			lowest, highest = 1, 1 // nobody has any: an empty pane
		}
		p.X.Min, p.X.Max = slices.Min(at)/1.2, slices.Max(at)*1.2
		p.Y.Min, p.Y.Max = math.Pow10(int(math.Floor(math.Log10(lowest)))), math.Pow10(int(math.Ceil(math.Log10(highest*1.01))))
		panes[i] = p
	}
	if short {
		panes[0].Title.Text = shortWarning
	}
	s := newSVG(2*margin+paneWidth*vg.Length(len(panes))+legendWidth, paneHeight)
	left, beside := divide(s.canvas)
	for i, p := range panes {
		from := paneWidth * vg.Length(i)
		p.Draw(draw.Crop(left, from, from+paneWidth-margin-(left.Max.X-left.Min.X), 0, 0))
	}
	legend.Draw(beside)
	return s.bytes()
}

// line is a contender's figures, and how far below and above them those of other seeds are.
type line struct {
	plotter.XYs
	plotter.YErrors
}

// line are the figures of a contender.
func (p *pane) line(name string, results []result, at []float64) (l line) {
	for k, r := range results {
		y := p.of(r)
		if r.Contender != name || y <= 0 { // a logarithmic axis has no nought
			continue
		}
		off := struct{ Low, High float64 }{}
		if p.among != nil && r.Spread.Seeds > 0 {
			if least, most := p.among(r.Spread); least > 0 {
				off.Low, off.High = y-least, most-y
			}
		}
		l.XYs, l.YErrors = append(l.XYs, plotter.XY{X: at[k], Y: y}), append(l.YErrors, off)
	}
	return l
}

// draw adds the line to a plot, and returns what of it stands in a legend.
func (l line) draw(p *plot.Plot, in color.Color) ([]plot.Thumbnailer, error) {
	drawn, dots, err := plotter.NewLinePoints(l)
	if err != nil {
		return nil, err
	}
	drawn.Color, drawn.Width = in, vg.Points(2)
	dots.Color, dots.Shape, dots.Radius = in, draw.CircleGlyph{}, vg.Points(3)
	seeds, err := plotter.NewYErrorBars(l)
	if err != nil {
		return nil, err
	}
	seeds.Color = in
	p.Add(drawn, dots, seeds)
	return []plot.Thumbnailer{drawn, dots}, nil
}

// span is the least and the most that the line shows.
func (l line) span() (least, most float64) {
	least = math.Inf(1)
	for i, at := range l.XYs {
		least, most = min(least, at.Y-l.YErrors[i].Low), max(most, at.Y+l.YErrors[i].High)
	}
	return least, most
}

// marks are the ticks of an axis: what was run, each once, and nothing between. One so close
// to the next that their numbers would overlap has none.
func marks(at []float64) (ticks plot.ConstantTicks) {
	at = slices.Compact(slices.Sorted(slices.Values(at)))
	for i, x := range at {
		tick := plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'f', -1, 64)}
		if i+1 < len(at) && at[i+1] < 2*x {
			tick.Label = " " // a tick without a label is drawn shorter
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// newPlot is a plot with logarithmic figures, which are in its title, and a grid.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.Y.Scale = plot.LogScale{}
	p.Y.Tick.Marker = plot.LogTicks{Prec: -1}
	for _, s := range []*draw.TextStyle{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.X.Tick.Label, &p.Y.Tick.Label} {
		s.Font.Typeface, s.Font.Variant = "Liberation", "Sans"
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, color.Gray{Y: 0xdd}
	p.Add(grid) // first, so that it is behind what is drawn
	return p
}

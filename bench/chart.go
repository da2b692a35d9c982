package main

import (
	"bytes"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Peers are grey and brown, this library's modes blue, violet and green. A test
// sees to it that each contender has its own.
var (
	peerColors = []color.RGBA{{0x9e, 0x9e, 0x9e, 0xff}, {0x61, 0x61, 0x61, 0xff}, {0xa1, 0x88, 0x7f, 0xff}, {0xd7, 0xcc, 0xc8, 0xff}}
	ownColors  = []color.RGBA{
		{0x90, 0xca, 0xf9, 0xff}, {0x21, 0x96, 0xf3, 0xff}, {0x0d, 0x47, 0xa1, 0xff}, {0xa5, 0xd6, 0xa7, 0xff}, {0x4c, 0xaf, 0x50, 0xff},
		{0x1b, 0x5e, 0x20, 0xff}, {0xb3, 0x9d, 0xdb, 0xff}, {0x67, 0x3a, 0xb7, 0xff}, {0x00, 0x96, 0x88, 0xff}, {0x00, 0xbc, 0xd4, 0xff},
		{0xc6, 0xd8, 0x3a, 0xff}, {0xd5, 0x00, 0x00, 0xff}, {0x6d, 0x4c, 0x41, 0xff},
	}
)

// In points.
const (
	chartHeight vg.Length = 480
	groupWidth  vg.Length = 118
	legendWidth vg.Length = 190
	margin      vg.Length = 12
)

// chart draws changes per second, grouped by scenario, as SVG.
func chart(results []result, short bool) ([]byte, error) {
	var names, groups []string
	for _, r := range results {
		if !slices.Contains(names, r.Contender) {
			names = append(names, r.Contender)
		}
		if !slices.Contains(groups, r.Scenario) {
			groups = append(groups, r.Scenario)
		}
	}
	p := frame(groups)
	if short {
		p.Title.Text = shortWarning
	}
	legend := newLegend()
	colors := palette(names)
	for slot, name := range names {
		b := bars{slot: slot, slots: len(names), rates: make([]float64, len(groups)), color: colors[slot]}
		for _, r := range results {
			if r.Contender == name {
				b.rates[slices.Index(groups, r.Scenario)] = r.Rate
			}
		}
		p.Add(b)
		legend.Add(name, b)
	}

	svg := newSVG(2*margin+groupWidth*vg.Length(max(len(groups), 4))+legendWidth, chartHeight)
	bars, beside := divide(svg.canvas)
	p.Draw(bars)
	legend.Draw(beside)
	return svg.bytes()
}

// svg is an image with its canvas. Its ground is white and opaque, so that it can be
// read on pages of any colour.
type svg struct {
	image  *vgsvg.Canvas
	canvas draw.Canvas
}

func newSVG(width, height vg.Length) svg {
	image := vgsvg.New(width, height)
	canvas := draw.New(image)
	canvas.FillPolygon(color.White, rectangle(canvas.Min.X, canvas.Min.Y, canvas.Max.X, canvas.Max.Y))
	return svg{image, canvas}
}

func (s svg) bytes() ([]byte, error) {
	var out bytes.Buffer
	if _, err := s.image.WriteTo(&out); err != nil {
		return nil, err
	}
	// Where the typeface is not installed, one of the same widths shall do.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif")), nil
}

// divide divides the canvas: a legend among what is plotted would cover some.
func divide(c draw.Canvas) (plotted, legend draw.Canvas) {
	left := c.Max.X - c.Min.X - margin - legendWidth
	return draw.Crop(c, margin, -margin-legendWidth-margin, margin, -margin), draw.Crop(c, left, -margin, margin, -4*margin)
}

// frame is the chart without its bars.
func frame(groups []string) *plot.Plot {
	p := newPlot("Changes per second (more is better; logarithmic)")
	labels := make([]string, len(groups))
	for i, group := range groups {
		labels[i] = strings.Replace(group, ", ", ",\n", 1)
	}
	p.NominalX(labels...)
	return p
}

// newLegend is an empty one.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left = true, true
	l.Padding = vg.Points(2)
	l.TextStyle.Font.Typeface, l.TextStyle.Font.Variant = "Liberation", "Sans"
	return l
}

// palette gives every contender a colour of its kind.
func palette(names []string) []color.Color {
	others := peers()
	colors := make([]color.Color, len(names))
	peer, own := 0, 0
	for i, name := range names {
		if slices.Contains(others, name) {
			colors[i] = peerColors[peer%len(peerColors)]
			peer++
		} else {
			colors[i] = ownColors[own%len(ownColors)]
			own++
		}
	}
	return colors
}

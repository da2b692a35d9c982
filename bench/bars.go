package main

import (
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// bars are one contender's bars in all groups. The library's own bar chart
// begins at nought, which a logarithmic axis does not have.
type bars struct {
	rates       []float64 // by group; 0: no bar
	slot, slots int       // which of the bars in a group
	color       color.Color
}

var (
	_ plot.Plotter     = bars{}
	_ plot.DataRanger  = bars{}
	_ plot.Thumbnailer = bars{}
)

// gap is the share of a group that stays empty.
const gap = 0.16

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	width := (1 - gap) / float64(b.slots)
	for group, rate := range b.rates {
		if rate <= 0 {
			continue
		}
		left := float64(group) - (1-gap)/2 + width*float64(b.slot)
		c.FillPolygon(b.color, rectangle(x(left), y(p.Y.Min), x(left+0.92*width), y(rate)))
	}
}

// DataRange implements plot.DataRanger. The axis begins at 10, or at the power
// of ten below the smallest rate.
func (b bars) DataRange() (xmin, xmax, ymin, ymax float64) {
	ymin, ymax = 10, 100
	for _, rate := range b.rates {
		for rate > 0 && rate < ymin {
			ymin /= 10
		}
		ymax = max(ymax, rate)
	}
	return -0.5, float64(len(b.rates)) - 0.5, ymin, ymax
}

// Thumbnail implements plot.Thumbnailer.
func (b bars) Thumbnail(c *draw.Canvas) {
	c.FillPolygon(b.color, rectangle(c.Min.X, c.Min.Y, c.Max.X, c.Max.Y))
}

func rectangle(left, bottom, right, top vg.Length) []vg.Point {
	return []vg.Point{{X: left, Y: bottom}, {X: left, Y: top}, {X: right, Y: top}, {X: right, Y: bottom}}
}

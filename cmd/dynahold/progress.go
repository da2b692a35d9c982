package main

import (
	"fmt"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/dynahold/dynahold/cmd/dynahold/internal/compare"
	"github.com/dynahold/dynahold/internal/load"
)

// reporter shows how far a comparison is.
type reporter interface {
	compare.Progress
	stop() // nothing is shown any more
}

func newProgress(c *console, quiet bool, rounds int) reporter {
	switch {
	case quiet:
		return &lines{w: io.Discard}
	case c.errIsTerminal:
		return newBar(c, rounds)
	}
	return &lines{w: c.err, rounds: rounds}
}

// lines are for logs: one for each run of a mode.
type lines struct {
	w      io.Writer
	rounds int
}

func (l *lines) Begin(string, int) {}
func (l *lines) Advance(float64)   {}
func (l *lines) stop()             {}
func (l *lines) End(r load.Result, round int) {
	fmt.Fprintf(l.w, "round %d of %d: %s: %.0f changes/s in %s\n", round, l.rounds, r.Contender, r.Rate, compare.FormatTime(r.Measured.Round(time.Second/10)))
}

// bar is for terminals: one line that changes, and is gone at the end.
type bar struct {
	bar    *progressbar.ProgressBar
	rounds int
}

const (
	barTotal = 1000
	redraw   = 100 * time.Millisecond
)

func newBar(c *console, rounds int) *bar {
	return &bar{rounds: rounds, bar: progressbar.NewOptions(barTotal,
		progressbar.OptionSetWriter(c.err),
		progressbar.OptionSetDescription("starting the embedded engine"),
		progressbar.OptionSetWidth(barWidth),
		progressbar.OptionThrottle(redraw),
		progressbar.OptionSetPredictTime(true),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetRenderBlankState(true),
	)}
}

// barWidth leaves room for the name of a mode and the time in 80 columns.
const barWidth = 20

func (b *bar) Begin(mode string, round int) {
	// Padded, so that the bar beside it stays where it is.
	b.bar.Describe(fmt.Sprintf("%-35s", fmt.Sprintf("%d/%d %s", round, b.rounds, mode)))
}

// Advance shows all but the end, at which the bar would vanish for good.
func (b *bar) Advance(share float64) { _ = b.bar.Set(min(int(barTotal*share), barTotal-1)) }
func (b *bar) End(load.Result, int)  {}
func (b *bar) stop()                 { _ = b.bar.Finish() }

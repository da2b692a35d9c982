package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// progress tells how far the runs are.
type progress struct {
	out      io.Writer
	terminal bool // whose line can be overwritten; a log only gets the results
	runs     int
	done     int
	running  string
	began    time.Time
}

func newProgress(out io.Writer, runs int) *progress {
	p := &progress{out: out, runs: runs, began: time.Now()}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		p.terminal = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return p
}

func (p *progress) start(scenario, contender string) {
	p.running = fmt.Sprintf("[%d/%d] %s: %s", p.done+1, p.runs, scenario, contender)
	p.share(0)
}

func (p *progress) share(done float64) {
	if p.terminal {
		_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s %3.0f %%", p.running, 100*done)
	}
}

func (p *progress) end(r load.Result) {
	p.done++
	if p.terminal {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
	_, _ = fmt.Fprintf(p.out, "%s: %.0f changes/s, %d lost (%v)\n", p.running, r.Rate, r.Lost, time.Since(p.began).Round(time.Second))
}

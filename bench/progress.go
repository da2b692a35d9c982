package main

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress tells how far the runs are, a line for each that has ended.
type progress struct {
	runs  int
	began time.Time

	mu   sync.Mutex
	out  io.Writer // guarded by mu
	done int       // guarded by mu
}

func newProgress(out io.Writer, runs int) *progress {
	return &progress{runs: runs, began: time.Now(), out: out}
}

func (p *progress) end(r result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	_, _ = fmt.Fprintf(p.out, "[%d/%d, %v] %s: %s: %s changes/s, lost: %s\n",
		p.done, p.runs, time.Since(p.began).Round(time.Second), r.Scenario, r.Contender, figures(r.Rate), wrong(r))
}

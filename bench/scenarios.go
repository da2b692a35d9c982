package main

import (
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// The scenarios. Each hot one also has a variant with work inside the change,
// and one with pauses between the changes of a worker.
const (
	alone1KB    = "alone, 1 KB"
	alone10KB   = "alone, 10 KB"
	alone100KB  = "alone, 100 KB"
	process8    = "1 process of 8"
	process64   = "1 process of 64"
	process256  = "1 process of 256"
	processes8  = "8 processes"
	processes32 = "32 processes"
	eightOf8    = "8 processes of 8"
	zipf1000    = "8 processes of 8, 1,000 items"

	withWork   = ", 5 ms work"
	withPauses = ", 50 ms pauses"
)

const (
	work  = 5 * time.Millisecond
	pause = 50 * time.Millisecond
)

// scenario is a workload with a name.
type scenario struct {
	name     string
	workload load.Workload
	charted  bool // one chart cannot show them all
}

// A run ends early with enough changes, or with more requests than a default
// run has time for: every contender in every scenario in about ten minutes.
const (
	span   = 4 * time.Second
	warmup = 500 * time.Millisecond
	enough = 4000
	budget = 4000

	// A short run ends with this many changes, however slow the machine is.
	shortEnough = 20
	shortSpan   = time.Minute
	shortWarmup = 10 * time.Millisecond
	shortCrowd  = 6
)

// scenarios returns all of them; a short run has fewer callers and items and
// less time, so that everything is tried but nothing measured.
func scenarios(short bool) []scenario {
	alone := []scenario{
		{alone1KB, load.Workload{Size: 1 << 10}, true},
		{alone10KB, load.Workload{Size: 10 << 10}, false},
		{alone100KB, load.Workload{Size: 100 << 10}, false},
	}
	hot := []scenario{
		{process8, load.Workload{Workers: 8}, true},
		{process64, load.Workload{Workers: 64}, true},
		{process256, load.Workload{Workers: 256}, true},
		{processes8, load.Workload{Processes: 8}, true},
		{processes32, load.Workload{Processes: 32}, true},
		{eightOf8, load.Workload{Processes: 8, Workers: 8}, true},
		{zipf1000, load.Workload{Processes: 8, Workers: 8, Items: 1000, Zipf: 1.1}, true},
	}
	all := alone
	for _, s := range hot {
		busy, idle := s, s
		busy.name, busy.workload.Work, busy.charted = s.name+withWork, work, false
		idle.name, idle.workload.Pause, idle.charted = s.name+withPauses, pause, false
		all = append(all, s, busy, idle)
	}
	for i := range all {
		w := &all[i].workload
		if short {
			w.Processes, w.Workers, w.Items = min(w.Processes, shortCrowd), min(w.Workers, shortCrowd), min(w.Items, 4*shortCrowd)
			w.Span, w.Warmup, w.Enough = shortSpan, shortWarmup, shortEnough
		} else {
			w.Span, w.Warmup, w.Enough, w.Budget = span, warmup, enough, budget
		}
	}
	return all
}

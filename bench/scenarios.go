package main

import (
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// The scenarios. Each hot one also has a variant with work inside the change,
// and one with pauses between the changes of a worker.
const (
	alone1KB     = "alone, 1 KB"
	alone10KB    = "alone, 10 KB"
	alone100KB   = "alone, 100 KB"
	process8     = "1 process of 8"
	process64    = "1 process of 64"
	process256   = "1 process of 256"
	processes8   = "8 processes"
	processes32  = "32 processes"
	processes64  = "64 processes"
	processes128 = "128 processes"
	eightOf8     = "8 processes of 8"
	zipf1000     = "8 processes of 8, 1,000 items"
	zipf32       = "32 processes, 1,000 items"

	transfers     = "transfers, 8 processes of 8"
	transfers32   = "transfers, 32 processes"
	transfersZipf = "transfers, Zipf, 8 processes of 8"
	transfersZ32  = "transfers, Zipf, 32 processes"
	fewBy2        = "2 of 20 items, 8 processes of 8"
	fewBy2By32    = "2 of 20 items, 32 processes"
	fewBy5        = "5 of 20 items, 8 processes of 8"
	fewBy5By32    = "5 of 20 items, 32 processes"
	orders        = "orders, 8 processes of 8"
	orders32      = "orders, 32 processes"
	messages      = "messages, 8 processes of 8, 1,000 items"
	expressions   = "expressions, 8 processes of 8"

	locks1    = "named lock, alone"
	locksOf8  = "named lock, 1 process of 8"
	locks8    = "named lock, 8 processes"
	locks32   = "named lock, 32 processes"
	locks8of8 = "named lock, 8 processes of 8"

	withWork        = ", 5 ms work"
	withLongWork    = ", 20 ms work"
	withLongestWork = ", 50 ms work"
	withPauses      = ", 50 ms pauses"
)

const (
	held        = 20 * time.Millisecond
	work        = 5 * time.Millisecond
	longWork    = 20 * time.Millisecond
	longestWork = 50 * time.Millisecond
	pause       = 50 * time.Millisecond
)

// scenario is a workload with a name.
type scenario struct {
	name     string
	workload load.Workload
	charted  bool // one chart cannot show them all
	among    func() []load.Contender
}

// A run ends early with enough changes, or with more requests than a default
// run has time for.
const (
	span   = 4 * time.Second
	warmup = 500 * time.Millisecond
	enough = 4000
	budget = 4000
	// Where that is less than so many turns of a process, or of a goroutine of the only
	// one, it goes on: percentiles and fairness are then no chance.
	turns = 20

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
		{alone1KB, load.Workload{Size: 1 << 10}, true, counting},
		{alone10KB, load.Workload{Size: 10 << 10}, false, counting},
		{alone100KB, load.Workload{Size: 100 << 10}, false, counting},
	}
	hot := []scenario{
		{process8, load.Workload{Workers: 8}, true, counting},
		{process64, load.Workload{Workers: 64}, true, counting},
		{process256, load.Workload{Workers: 256}, true, counting},
		{processes8, load.Workload{Processes: 8}, true, counting},
		{processes32, load.Workload{Processes: 32}, true, counting},
		{processes64, load.Workload{Processes: 64}, false, counting},
		{eightOf8, load.Workload{Processes: 8, Workers: 8}, true, counting},
		{zipf1000, load.Workload{Processes: 8, Workers: 8, Items: 1000, Zipf: 1.1}, true, counting},
	}
	// A transfer takes two of 100 accounts. An order takes five products and a
	// customer, of 1,000 items, and is an item of its own.
	transfer := load.Workload{Processes: 8, Workers: 8, Items: 100, Touches: 2}
	order := load.Workload{Processes: 8, Workers: 8, Items: 1000, Touches: 6, Makes: true}
	others := []scenario{
		{transfers, transfer, false, moving},
		{transfers32, by32(transfer), false, moving},
		{transfersZipf, skewed(transfer), false, moving},
		{transfersZ32, by32(skewed(transfer)), false, moving},
		{fewBy2, few(2), false, moving},
		{fewBy2By32, by32(few(2)), false, moving},
		{fewBy5, few(5), false, moving},
		{fewBy5By32, by32(few(5)), false, moving},
		{orders, order, false, moving},
		{orders32, by32(order), false, moving},
		{messages, load.Workload{Processes: 8, Workers: 8, Items: 1000}, false, handlers},
		{eightOf8 + withLongWork, load.Workload{Processes: 8, Workers: 8, Work: longWork}, false, counting},
		{eightOf8 + withLongestWork, load.Workload{Processes: 8, Workers: 8, Work: longestWork}, false, counting},
		{zipf32, load.Workload{Processes: 32, Items: 1000, Zipf: 1.1}, false, counting},
		{processes128, load.Workload{Processes: 128}, false, counting},
		{locks1, load.Workload{Work: held, Held: true}, false, named},
		{locksOf8, load.Workload{Workers: 8, Work: held, Held: true}, false, named},
		{locks8, load.Workload{Processes: 8, Work: held, Held: true}, false, named},
		{locks32, load.Workload{Processes: 32, Work: held, Held: true}, false, named},
		{locks8of8, load.Workload{Processes: 8, Workers: 8, Work: held, Held: true}, false, named},
		{expressions, load.Workload{Processes: 8, Workers: 8}, false, withoutRead},
	}
	all := alone
	for _, s := range hot {
		busy, idle := s, s
		busy.name, busy.workload.Work, busy.charted = s.name+withWork, work, false
		idle.name, idle.workload.Pause, idle.charted = s.name+withPauses, pause, false
		all = append(all, s, busy, idle)
	}
	all = append(append(all, others...), identified()...)
	steps := growing()
	for i, s := range steps {
		if short && i+1 < len(steps) && steps[i+1].in == s.in {
			continue // in small all steps are the same
		}
		all = append(all, s.scenario)
	}
	for i := range all {
		w := &all[i].workload
		if short {
			w.Processes, w.Workers, w.Items = min(w.Processes, shortCrowd), min(w.Workers, shortCrowd), min(w.Items, 4*shortCrowd)
			w.Span, w.Warmup, w.Enough = shortSpan, shortWarmup, shortEnough
		} else if w.Span == 0 {
			w.Span, w.Warmup, w.Enough, w.Budget, w.Turns = span, warmup, enough, budget, turns
		}
	}
	return all
}

// few is a transfer between some of few items, all of them hot.
func few(touches int) load.Workload {
	return load.Workload{Processes: 8, Workers: 8, Items: 20, Touches: touches}
}

// by32 is the same work by 32 processes of one goroutine.
func by32(w load.Workload) load.Workload { w.Processes, w.Workers = 32, 1; return w }

// skewed is the same work where some items are wanted more than others.
func skewed(w load.Workload) load.Workload { w.Zipf = 1.1; return w }

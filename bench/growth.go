package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// growth is something that grows from scenario to scenario. Each has a chart of its own.
type growth struct {
	file  string
	title string
	panes []pane
}

// pane is one figure of a chart of growth.
type pane struct {
	title string
	of    func(result) float64
	among func(spread) (least, most float64) // of several seeds; nil: that is not known
}

// What grows: how many want one item, its size, how many items there are, and arguments.
var (
	inProcesses = &growth{"growth-processes", "Processes that want one item of 1 KB", []pane{rates, longest, requests, writeUnits}}
	inSize      = &growth{"growth-size", "KB of the item, one caller", []pane{rates, writeUnits, readUnits}}
	inItems     = &growth{"growth-items", "Items, wanted alike, 8 processes of 8", []pane{rates, longest, requests}}
	inSkewed    = &growth{"growth-items-zipf", "Items, Zipf 1.1, 8 processes of 8", []pane{rates, longest, requests}}

	inSenders   = &growth{"growth-commands", "Processes whose commands change one item of 1 KB", []pane{rates, longest, writeUnits, readUnits}}
	inArguments = &growth{"growth-arguments", "Bytes of a command's arguments, 32 processes", []pane{rates, longest, writeUnits, readUnits}}
	inCommanded = &growth{"growth-commanded", "KB of the item, commands of 32 processes", []pane{rates, longest, writeUnits, readUnits}}

	growths = []*growth{inProcesses, inSize, inItems, inSkewed, inSenders, inArguments, inCommanded}

	rates = pane{"changes per second", func(r result) float64 { return r.Rate },
		func(s spread) (least, most float64) { return s.RateLeast, s.RateMost }}
	longest = pane{"p99 in ms", func(r result) float64 { return inMilliseconds(r.P99) },
		func(s spread) (least, most float64) { return inMilliseconds(s.P99Least), inMilliseconds(s.P99Most) }}
	requests   = pane{"requests per change", func(r result) float64 { return r.Requests }, nil}
	writeUnits = pane{"write units per change", func(r result) float64 { return r.WriteUnits }, nil}
	readUnits  = pane{"read units per change", func(r result) float64 { return r.ReadUnits }, nil}
)

// These runs end with fewer requests than others, whoever had how many turns: with
// hundreds of processes, or with hundreds of KB, each costs more of the machine. They
// begin when everybody stands in line.
const (
	growthSpan   = 16 * time.Second
	growthWarmup = time.Second
	senderWarmup = 250 * time.Millisecond // some ten turns; of hundreds of processes a second is most of a run
	growthBudget = 4000
	eachBudget   = 40  // requests of each process, where those are more
	sizeBudget   = 400 // where a request can carry 390 KB
)

// step is a scenario of a growth, with what has grown so far.
type step struct {
	scenario
	in *growth
	at int
}

// growing are the steps of all growths.
func growing() (steps []step) {
	add := func(in *growth, name string, at int, w load.Workload, among func() []load.Contender) {
		w.Span, w.Warmup, w.Budget = growthSpan, growthWarmup, max(growthBudget, eachBudget*w.Processes)
		if in == inSize {
			w.Budget = sizeBudget
		}
		if in == inSenders {
			w.Warmup = senderWarmup
		}
		steps = append(steps, step{scenario{name: growthOf + name, workload: w, among: among}, in, at})
	}
	single := of(articleName, versionName, "optimistic", "pessimistic")
	wanted := of(articleName, versionName, "optimistic", "pessimistic", "pessimistic, race")
	for _, n := range []int{1, 2, 8, 32, 128, 512, 1000} {
		add(inProcesses, count(n, "process", "processes"), n, load.Workload{Processes: n}, wanted)
	}
	for _, kb := range []int{1, 4, 10, 40, 100, 390} {
		add(inSize, fmt.Sprintf("%d KB", kb), kb, load.Workload{Size: kb << 10}, single)
	}
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		add(inItems, count(n, "item", "items"), n, load.Workload{Processes: 8, Workers: 8, Items: n}, wanted)
	}
	for _, n := range []int{1, 10, 100, 1000, 10_000} {
		add(inSkewed, count(n, "item", "items")+", Zipf", n, load.Workload{Processes: 8, Workers: 8, Items: n, Zipf: 1.1}, wanted)
	}
	for _, n := range []int{8, 32, 128, 512, 1000} {
		add(inSenders, count(n, "process", "processes")+", commands", n, load.Workload{Processes: n}, commanding(0))
	}
	for _, bytes := range []int{100, 1 << 10, 2 << 10, 4 << 10} {
		add(inArguments, fmt.Sprintf("arguments of %d B", bytes), bytes, load.Workload{Processes: 32}, commanding(bytes))
	}
	for _, kb := range []int{1, 4, 16, 64} {
		add(inCommanded, fmt.Sprintf("%d KB, commands", kb), kb, load.Workload{Processes: 32, Size: kb << 10}, commanding(0))
	}
	return steps
}

// commanding is changes by commands whose arguments have so many bytes more than a number.
func commanding(bytes int) func() []load.Contender {
	return func() []load.Contender { return []load.Contender{delegating(bytes)} }
}

func count(n int, one, many string) string {
	if n != 1 {
		one = many
	}
	return fmt.Sprintf("%d %s", n, one)
}

// growthOf begins the names of these scenarios.
const growthOf = "growth, "

// of are some of those who change one item.
func of(names ...string) func() []load.Contender {
	return func() []load.Contender {
		return slices.DeleteFunc(counting(), func(c load.Contender) bool { return !slices.Contains(names, c.Name) })
	}
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dynahold/dynahold/internal/load"
)

// world is what lies around a workload: how long its requests take, and what a partition
// lets through.
type world struct {
	name    string // on the command line
	where   string // ends the names of its scenarios where several worlds are run
	ending  string // of the names of its charts
	virtual bool   // it is there in virtual time only
	enter   func(*load.Workload)
}

// worlds are all of them; the first is where nothing else is said.
var worlds = []world{
	{"even", "", ".svg", false, func(*load.Workload) {}},
	{"partition", withPartition, "-partition.svg", true, func(w *load.Workload) { w.Partition = true }},
	{"lognormal", ", log-normal", "-lognormal.svg", true, func(w *load.Workload) { w.Latency = uneven }},
	{"pareto", ", Pareto", "-pareto.svg", true, func(w *load.Workload) {
		w.Latency = uneven
		w.Latency.Pareto = true
	}},
	{"stalls", ", stalls", "-stalls.svg", true, func(w *load.Workload) { w.Latency.Stall = stall }},
}

const withPartition = ", partition's limits"

// The latency of uneven worlds.
var uneven = load.Latency{Median: 4 * time.Millisecond, P99: 50 * time.Millisecond}

// stall is how much longer one request in a thousand takes where requests stall.
const stall = time.Second

// worldNames are their names on the command line.
func worldNames() (names []string) {
	for _, w := range worlds {
		names = append(names, w.name)
	}
	return names
}

// worldsNamed are those of a list of names, in their own order.
func worldsNamed(list string) (named []world, err error) {
	names := strings.Split(list, ",")
	for _, w := range worlds {
		if slices.Contains(names, w.name) {
			named = append(named, w)
		}
	}
	for _, name := range names {
		if !slices.Contains(worldNames(), name) {
			return nil, fmt.Errorf("there is no world %q; there are %s", name, strings.Join(worldNames(), ", "))
		}
	}
	return named, nil
}

// bare is the name of a scenario without its world.
func bare(scenario string) string { return strings.TrimSuffix(scenario, worldOf(scenario).where) }

// worldOf is the world at the end of a scenario's name.
func worldOf(scenario string) world {
	for _, w := range worlds[1:] {
		if strings.HasSuffix(scenario, w.where) {
			return w
		}
	}
	return worlds[0]
}

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report is what a run leaves behind.
type report struct {
	Virtual bool
	Short   bool // a trial with few callers, whatever the names of the scenarios say
	Worlds  []string
	Seed    uint64
	Seeds   int
	Command string // with the commit and the day, where they are known
	Results []result
}

// shortWarning goes with the results of a short run, wherever they are shown.
var shortWarning = fmt.Sprintf("A trial by -short, with at most %d processes of %d workers and %d items, whatever the names of the scenarios say: these are no results.",
	shortCrowd, shortCrowd, 4*shortCrowd)

// write makes results.json, results.csv, and the charts: of bars, and of what grows, each
// once for every world.
func write(folder string, r report) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": append(data, '\n')}
	all, err := charts(r)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
	}
	for _, c := range all {
		files[c.file] = c.svg
	}
	files["results.csv"] = []byte(r.origin() + "\n" + separated(r.Results))
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { // for everybody to read
			return err
		}
	}
	return nil
}

// origin is the first line of results.csv: how its figures came about.
func (r report) origin() string {
	clock := "real time"
	if r.Virtual {
		clock = "virtual time"
	}
	line := fmt.Sprintf("# %s; %s, seed %d", r.Command, clock, r.Seed)
	if r.Seeds > 1 {
		line += fmt.Sprintf(" and %d more: medians", r.Seeds-1)
	}
	if r.Short {
		line += "; " + shortWarning
	}
	return line
}

// image is a chart in a file.
type image struct {
	file string
	svg  []byte
}

// charts are those of a report: of bars first, then of what grows.
func charts(r report) (all []image, err error) {
	for _, w := range worlds {
		inIt := w.among(r.Results)
		if some := charted(inIt); len(some) > 0 {
			svg, err := chart(some, r.Short)
			if err != nil {
				return nil, err
			}
			all = append(all, image{"results" + w.ending, svg})
		}
		for _, g := range growths {
			svg, err := lineChart(g, inIt, r.Short)
			if err != nil {
				return nil, err
			}
			if svg != nil {
				all = append(all, image{g.file + w.ending, svg})
			}
		}
	}
	return all, nil
}

// among are the results in a world.
func (w world) among(all []result) []result {
	return slices.DeleteFunc(slices.Clone(all), func(r result) bool { return worldOf(r.Scenario).name != w.name })
}

// charted are the results of the main scenarios, or all of them where none of those was
// run. What grows has charts of its own.
func charted(all []result) []result {
	main := map[string]bool{}
	for _, s := range scenarios(false) {
		main[s.name] = s.charted
	}
	some := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !main[bare(r.Scenario)] })
	if len(some) > 0 {
		return some
	}
	return slices.DeleteFunc(slices.Clone(all), func(r result) bool { return strings.HasPrefix(r.Scenario, growthOf) })
}

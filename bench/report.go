package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// report is what a run leaves behind.
type report struct {
	Virtual   bool
	Short     bool // a trial with few callers, whatever the names of the scenarios say
	Partition bool // every item had the limits of a partition
	Seed      uint64
	Results   []result
}

// shortWarning goes with the results of a short run, wherever they are shown.
var shortWarning = fmt.Sprintf("A trial by -short, with at most %d processes of %d workers and %d items, whatever the names of the scenarios say: these are no results.",
	shortCrowd, shortCrowd, 4*shortCrowd)

// write makes results.json, results.md, results.svg, and results-partition.svg where
// both worlds were run.
func write(folder string, r report) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	files := map[string][]byte{"results.json": append(data, '\n')}
	images := ""
	for name, results := range worlds(r.Results) {
		svg, err := chart(charted(results), r.Short)
		if err != nil {
			return fmt.Errorf("chart: %w", err)
		}
		files[name] = svg
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if filepath.Ext(name) == ".svg" {
			images = fmt.Sprintf("![Changes per second by scenario and contender](%s)\n\n", name) + images
		}
	}
	clock := "real time"
	if r.Virtual {
		clock = "virtual time"
	}
	if r.Partition {
		clock += ", with the limits of a partition for each item"
	}
	warning := ""
	if r.Short {
		warning = "**" + shortWarning + "**\n\n"
	}
	page := warning + fmt.Sprintf("Measured in %s, seed %d.\n\n%s%s\n", clock, r.Seed, images, tabulate(r.Results).RenderMarkdown())
	files["results.md"] = []byte(page)
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { // for everybody to read
			return err
		}
	}
	return nil
}

// worlds are the results of each chart: of those without the limits of a partition and
// of those with them, where both were run.
func worlds(all []result) map[string][]result {
	limited := func(r result) bool { return strings.HasSuffix(r.Scenario, withPartition) }
	charts := map[string][]result{"results.svg": slices.DeleteFunc(slices.Clone(all), limited)}
	if some := slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !limited(r) }); len(some) > 0 {
		charts["results-partition.svg"] = some
	}
	return charts
}

// charted are the results of the main scenarios, or all of them where none of
// those was run.
func charted(all []result) (some []result) {
	main := map[string]bool{}
	for _, s := range scenarios(false) {
		main[s.name] = s.charted
	}
	some = slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !main[strings.TrimSuffix(r.Scenario, withPartition)] })
	if len(some) == 0 {
		return all
	}
	return some
}

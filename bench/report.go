package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// write makes results.json, results.md and results.svg.
func write(folder string, r report) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	data, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	svg, err := chart(charted(r.Results), r.Short)
	if err != nil {
		return fmt.Errorf("chart: %w", err)
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
	page := warning + fmt.Sprintf("Measured in %s, seed %d.\n\n![Changes per second by scenario and contender](results.svg)\n\n%s\n", clock, r.Seed, tabulate(r.Results).RenderMarkdown())
	for name, content := range map[string][]byte{"results.json": append(data, '\n'), "results.md": []byte(page), "results.svg": svg} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil { // for everybody to read
			return err
		}
	}
	return nil
}

// charted are the results of the main scenarios, or all of them where none of
// those was run.
func charted(all []result) (some []result) {
	main := map[string]bool{}
	for _, s := range scenarios(false) {
		main[s.name] = s.charted
	}
	some = slices.DeleteFunc(slices.Clone(all), func(r result) bool { return !main[r.Scenario] })
	if len(some) == 0 {
		return all
	}
	return some
}

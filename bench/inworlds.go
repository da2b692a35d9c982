package main

import (
	"fmt"
	"slices"
	"strings"
)

// rowsInWorlds are the rows of scenarios that match, one for what happened in the even world
// and in some others: 1614/1402/1511. Only the figures whose spread over the seeds is known
// are told of each world. Column "spread" is that of the rates, in all of them: how far from
// the median a seed was at most; without rates, of the requests. The world ends the name of
// the scenario, or that of a benchmark's part.
func rowsInWorlds(file, scenario, contender string, others []string) (rows []measured, err error) {
	all, err := readRows(file)
	if err != nil {
		return nil, err
	}
	elsewhere := func(r measured) bool {
		return slices.ContainsFunc(worlds[1:], func(w world) bool {
			return strings.HasSuffix(r["scenario"], w.where) || strings.HasSuffix(r["contender"], w.where)
		})
	}
	wanted, err := matching(slices.DeleteFunc(slices.Clone(all), elsewhere), scenario, contender)
	if err != nil {
		return nil, err
	}
	for _, row := range wanted {
		inEach := []measured{row}
		for _, other := range others {
			there := slices.IndexFunc(all, func(r measured) bool {
				return r["scenario"] == row["scenario"]+", "+other && r["contender"] == row["contender"] ||
					r["scenario"] == row["scenario"] && r["contender"] == row["contender"]+", "+other
			})
			if there < 0 {
				return nil, fmt.Errorf("%s of %s was not measured: %s", other, row["scenario"], row["contender"])
			}
			inEach = append(inEach, all[there])
		}
		one, err := inOne(inEach)
		if err != nil {
			return nil, err
		}
		rows = append(rows, one)
	}
	return rows, nil
}

// inOne puts what happened in several worlds into one row, that of the first of them.
func inOne(inEach []measured) (one measured, err error) {
	one, furthest, rate := measured{}, 0.0, "changes/s"
	for _, other := range []string{"jobs/s", "requests/job"} { // of benchmarks
		if inEach[0][rate] == "" {
			rate = other
		}
	}
	for column, cell := range inEach[0] {
		if inEach[0][column+", range"] != "" {
			var cells []string
			for _, w := range inEach {
				cells = append(cells, w[column])
			}
			cell = strings.Join(cells, "/")
		}
		if !strings.HasSuffix(column, ", range") {
			one[column] = cell
		}
	}
	for _, w := range inEach {
		var middle, least, most float64
		if _, err := fmt.Sscanf(w[rate]+" "+w[rate+", range"], "%g %g to %g", &middle, &least, &most); err != nil {
			return nil, fmt.Errorf("the spread of %s is not known: %s", w["scenario"], w["contender"])
		}
		furthest = max(furthest, most/middle-1, 1-least/middle)
	}
	one["spread"] = fmt.Sprintf("±%.0f%%", 100*furthest)
	return one, nil
}

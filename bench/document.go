package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Documents say which figures a table has, and the tables are filled from files that
// a run has written:
//
//	<!-- table from="results/hot-item.csv" scenario="^32 processes$" contender="fair" columns="changes/s, p99 ms" -->
//	...
//	<!-- end of table -->
//
// With across instead of columns each scenario is a column, and a cell has all figures
// that are named there. A figure of several seeds is their median, with the least and the
// greatest of them behind it. With worlds="log-normal, stalls" a row is also that of its
// scenario in these, as rowsInWorlds says.
var (
	marked  = regexp.MustCompile(`(?s)(<!-- table ([^\n]*) -->\n).*?(<!-- end of table -->)`)
	setting = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// fill returns a document with its tables filled; folder is where it stands.
func fill(document, folder string) (filled string, err error) {
	filled = marked.ReplaceAllStringFunc(document, func(block string) string {
		parts := marked.FindStringSubmatch(block)
		page, tableErr := fillTable(parts[2], folder)
		err = errors.Join(err, tableErr)
		return parts[1] + "\n" + page + "\n" + parts[3]
	})
	return filled, err
}

// fillTable makes one table as its mark says.
func fillTable(mark, folder string) (string, error) {
	asked := map[string]string{}
	for _, found := range setting.FindAllStringSubmatch(mark, -1) {
		asked[found[1]] = found[2]
	}
	names := func(list string) (names []string) {
		for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ';' }) {
			names = append(names, strings.TrimSpace(name))
		}
		return names
	}
	var rows []measured
	var err error
	if file := filepath.Join(folder, asked["from"]); asked["worlds"] != "" {
		rows, err = rowsInWorlds(file, asked["scenario"], asked["contender"], names(asked["worlds"]))
	} else {
		rows, err = rowsOf(file, asked["scenario"], asked["contender"])
	}
	if err != nil {
		return "", fmt.Errorf("table %s: %w", mark, err)
	}
	if asked["across"] != "" {
		return across(rows, names(asked["across"]))
	}
	return listed(rows, names(asked["columns"]))
}

// A measured row has the cells of one contender in one scenario, by column.
type measured map[string]string

// rowsOf reads the rows that match from what a run has written.
func rowsOf(file, scenario, contender string) ([]measured, error) {
	rows, err := readRows(file)
	if err != nil {
		return nil, err
	}
	return matching(rows, scenario, contender)
}

// readRows reads what a run has written: results.csv of this program, or what
// go test -bench prints.
func readRows(file string) ([]measured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if filepath.Ext(file) == ".csv" {
		return readCSV(f)
	}
	return readBenchmarks(f)
}

// matching are the rows whose scenario and contender match; there is at least one.
func matching(rows []measured, scenario, contender string) (some []measured, err error) {
	scenarios, err := regexp.Compile(scenario)
	if err != nil {
		return nil, err
	}
	contenders, err := regexp.Compile(contender)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		if scenarios.MatchString(r["scenario"]) && contenders.MatchString(r["contender"]) {
			some = append(some, r)
		}
	}
	if len(some) == 0 {
		return nil, errors.New("no row matches")
	}
	return some, nil
}

func readCSV(f io.Reader) (rows []measured, err error) {
	r := csv.NewReader(f)
	r.Comment = '#'
	head, err := r.Read()
	if err != nil {
		return nil, err
	}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		row := measured{}
		for i, name := range head {
			row[name] = cells[i]
		}
		rows = append(rows, row)
	}
}

// benchmark is a line of go test -bench: the name, GOMAXPROCS, the number of runs, and
// pairs of value and unit (https://go.dev/design/14313-benchmark-format).
var benchmark = regexp.MustCompile(`(?m)^Benchmark([^/\s]+)/?(\S*?)(?:-\d+)?\s+\d+\s+(.*)$`)

// readBenchmarks takes the first part of a benchmark's name for the scenario, and the
// rest of it for the contender. A unit is a column; one that was not measured is empty.
// Lines of one name, as -count makes them, are one row: that of their medians.
func readBenchmarks(f io.Reader) (rows []measured, err error) {
	text, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	var names, units []string
	runs := map[string]map[string][]float64{} // by name and unit
	for _, line := range benchmark.FindAllStringSubmatch(string(text), -1) {
		name := line[1] + "/" + line[2]
		if runs[name] == nil {
			names, runs[name] = append(names, name), map[string][]float64{}
		}
		for pair := range slices.Chunk(strings.Fields(line[3]), 2) {
			value, err := strconv.ParseFloat(pair[0], 64)
			if err != nil || len(pair) < 2 {
				return nil, fmt.Errorf("%q is no line of go test -bench", line[0])
			}
			runs[name][pair[1]], units = append(runs[name][pair[1]], value), append(units, pair[1])
		}
	}
	for _, name := range names {
		row := measured{}
		row["scenario"], row["contender"], _ = strings.Cut(strings.ReplaceAll(name, "_", " "), "/")
		for _, unit := range units {
			row[unit] += "" // the column is there
		}
		for unit, values := range runs[name] {
			least, middle, most := sorted(values)
			if row[unit] = figures(middle); len(values) > 1 {
				row[unit+", range"] = spread{Seeds: len(values), RateLeast: least, RateMost: most}.rates()
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// listed is a table with a line for each row. A scenario stands at its first one.
func listed(rows []measured, columns []string) (string, error) {
	several := slices.ContainsFunc(rows, func(r measured) bool { return r["scenario"] != rows[0]["scenario"] })
	head := []string{""}
	if several {
		head = []string{"", ""}
	}
	lines, before := [][]string{append(head, columns...)}, ""
	for _, row := range rows {
		line := []string{row["contender"]}
		if several {
			scenario := ""
			if row["scenario"] != before {
				scenario, before = row["scenario"], row["scenario"]
			}
			line = []string{scenario, row["contender"]}
		}
		cells, err := row.cells(columns)
		if err != nil {
			return "", err
		}
		lines = append(lines, append(line, cells...))
	}
	return markdown(lines), nil
}

// across is a table with a line for each contender and a column for each scenario.
func across(rows []measured, columns []string) (string, error) {
	head, byContender := []string{""}, map[string]map[string]string{}
	var contenders []string
	for _, row := range rows {
		cells, err := row.cells(columns)
		if err != nil {
			return "", err
		}
		if !slices.Contains(head, row["scenario"]) {
			head = append(head, row["scenario"])
		}
		if byContender[row["contender"]] == nil {
			contenders, byContender[row["contender"]] = append(contenders, row["contender"]), map[string]string{}
		}
		byContender[row["contender"]][row["scenario"]] = strings.Join(cells, "; ")
	}
	lines := [][]string{head}
	for _, contender := range contenders {
		line := []string{contender}
		for _, scenario := range head[1:] {
			line = append(line, byContender[contender][scenario])
		}
		lines = append(lines, line)
	}
	return markdown(lines), nil
}

// cells are those of the named columns.
func (r measured) cells(columns []string) (cells []string, err error) {
	for _, column := range columns {
		cell, ok := r[column]
		if !ok {
			return nil, fmt.Errorf("there is no column %q", column)
		}
		if spread := r[column+", range"]; spread != "" {
			cell += " (" + strings.ReplaceAll(spread, " to ", "–") + ")"
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// markdown writes lines of cells, the first of which is the head.
func markdown(lines [][]string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(line, " | "))
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(line)) + "\n")
		}
	}
	return b.String()
}

// fillFile fills the tables of a document in its file.
func fillFile(name string) error {
	document, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	filled, err := fill(string(document), filepath.Dir(name))
	if err != nil || filled == string(document) {
		return err
	}
	return os.WriteFile(name, []byte(filled), 0o644)
}

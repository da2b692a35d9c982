package main

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// result is a line of the file of results.
type result struct {
	Tier    string         `json:"tier"`
	Seed    uint64         `json:"seed"`
	Began   time.Time      `json:"began"`
	Seconds float64        `json:"seconds"`
	Failed  bool           `json:"failed"`
	Counts  map[string]int `json:"counts"`
	Commit  string         `json:"commit"`
	Machine string         `json:"machine"`
}

// counted are what tests say of themselves, by the words behind a number, and the column
// that it counts in.
var counted = []struct{ words, column string }{
	{"requests", "requests"},
	{"faults", "faults"},
	{"false answers", "faults"},
	{"verdicts", "verdicts"},
	{"operations", "verdicts"},
	{"changes", "verdicts"},
	{"transactions", "transactions"},
	{"kills", "kills"},
	{"processes killed", "kills"},
	{"pauses", "stops"},
	{"unknown", "unknown"},
	{"wrong", "wrong"},
	{"virtual hours", "virtual hours"},
}

// columns are those of the table, in its order.
var columns = []string{"requests", "faults", "verdicts", "transactions", "kills", "stops", "virtual hours", "unknown", "wrong"}

var count = regexp.MustCompile(`(\d+) ([a-z]+(?: [a-z]+)?)`)

// countsOf adds up what the output of a test has counted.
func countsOf(output string) map[string]int {
	sums := map[string]int{}
	for _, found := range count.FindAllStringSubmatch(output, -1) {
		for _, c := range counted {
			if found[2] == c.words || len(found[2]) > len(c.words) && found[2][:len(c.words)+1] == c.words+" " {
				n, _ := strconv.Atoi(found[1]) // of digits
				sums[c.column] += n
				break
			}
		}
	}
	return sums
}

// sum adds up the results of files, by tiers.
func sum(names []string) (map[string]*total, error) {
	all := map[string]*total{}
	for _, name := range names {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = errors.Join(add(all, file), file.Close())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return all, nil
}

// total is what became of one tier.
type total struct {
	runs, failed int
	seconds      float64
	counts       map[string]int
}

func add(all map[string]*total, in io.Reader) error {
	for d := json.NewDecoder(in); ; {
		var r result
		switch err := d.Decode(&r); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case r.Tier == "":
			return errors.New("it has a line without a tier")
		}
		t := all[r.Tier]
		if t == nil {
			t = &total{counts: map[string]int{}}
			all[r.Tier] = t
		}
		t.runs++
		t.seconds += r.Seconds
		if r.Failed {
			t.failed++
		}
		for column, n := range r.Counts {
			t.counts[column] += n
		}
	}
}

func (t *total) plus(o *total) {
	t.runs, t.failed, t.seconds = t.runs+o.runs, t.failed+o.failed, t.seconds+o.seconds
	for column, n := range o.counts {
		t.counts[column] += n
	}
}

// table writes totals as the document's tables are made from.
func table(out io.Writer, all map[string]*total) error {
	w := csv.NewWriter(out)
	_ = w.Write(append([]string{"scenario", "contender", "runs", "minutes", "failed"}, columns...)) // Error tells
	together := &total{counts: map[string]int{}}
	write := func(what string, t *total) {
		row := []string{"soak", what, strconv.Itoa(t.runs), strconv.Itoa(int(t.seconds / 60)), strconv.Itoa(t.failed)}
		for _, column := range columns {
			cell := ""
			if n, some := t.counts[column]; some {
				cell = strconv.Itoa(n)
			}
			row = append(row, cell)
		}
		_ = w.Write(row)
	}
	for _, tier := range tiers {
		if t := all[tier.name]; t != nil {
			write(tier.what, t)
			together.plus(t)
		}
	}
	write("all", together)
	w.Flush()
	return w.Error()
}

// resultFiles are those of a folder.
func resultFiles(folder string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "soak-*.jsonl"))
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there is no soak-*.jsonl in %s", folder)
	}
	return names, err
}

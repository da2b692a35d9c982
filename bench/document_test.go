package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The tables of the documents have the figures of the files that runs have written.
func TestDocumentsHaveTheFiguresOfRuns(t *testing.T) {
	tables := 0
	for _, name := range []string{"../README.md", "../docs/performance.md", "../docs/figures.md", "../docs/choosing.md", "../docs/telemetry.md", "../docs/reliability.md"} {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tables += len(marked.FindAllString(string(document), -1))
		filled, err := fill(string(document), filepath.Dir(name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if filled != string(document) {
			t.Errorf("%s has other figures than its files: go run . -document %s", name, name)
		}
	}
	if tables == 0 {
		t.Error("no document has a table of measured figures")
	}
}

// The bill of a month in docs/choosing.md is what its formula says, and that of the
// contended item has the writes and reads that a run has measured.
func TestTheBillOfAMonthFollowsFromItsFigures(t *testing.T) {
	document, err := os.ReadFile("../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	number := func(cell string) float64 {
		n, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(cell), " USD"), 64)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	_, table, _ := strings.Cut(string(document), "| change | W | R |")
	bills, contended := 0, 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 {
			if bills > 0 {
				break
			}
			continue
		}
		if strings.Contains(line, "---") || strings.Contains(line, "item of 1 KB") {
			continue
		}
		bills++
		writes, reads := number(cells[2]), number(cells[3])
		for i, size := range []float64{1, 10} {
			want := fmt.Sprintf("%.2f", 25.92*(0.625*writes*size+0.125*reads*math.Ceil(size/4)))
			if got := fmt.Sprintf("%.2f", number(cells[4+i])); got != want {
				t.Errorf("%s USD for %v KB, want %s: %s", got, size, want, line)
			}
		}
		if !strings.Contains(cells[1], "32 processes") {
			continue
		}
		contended++
		rows, err := rowsOf("../docs/results/hot-item.csv", "^32 processes$", "^"+strings.Trim(strings.Fields(cells[1])[0], "`")+"$")
		if err != nil || len(rows) != 1 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		if w, r := number(rows[0]["write units"]), number(rows[0]["read units"]); math.Abs(w-writes) > 0.1 || math.Abs(r-reads) > 0.1 {
			t.Errorf("measured were %v writes and %v reads: %s", w, r, line)
		}
	}
	if bills != 5 || contended != 2 {
		t.Errorf("%d bills, %d of contended items", bills, contended)
	}
}

// The settings of docs/choosing.md are advised with the figures of runs.
func TestAdviceHasTheFiguresOfRuns(t *testing.T) {
	document, err := os.ReadFile("../docs/choosing.md")
	if err != nil {
		t.Fatal(err)
	}
	const logNormal, stalls = ", log-normal", ", stalls"
	for row, want := range map[string][][3]string{
		"many callers of a process":   compared("hot-item", "1 process of 256", "optimistic, warm, combine", "version by hand", logNormal, stalls),
		"several processes that want": compared("uneven", "32 processes", "pessimistic", "version by hand", logNormal, ", Pareto", stalls),
		"several processes of many":   compared("hot-item", "8 processes of 8", "optimistic, warm, combine, fair", "version by hand", logNormal, stalls),
		"the same, and changes":       compared("work", "8 processes of 8, 20 ms work", "optimistic, warm, combine, fair", "version by hand", logNormal, stalls),
		"32 processes and":            compared("zipf", "32 processes, 1,000 items", "optimistic, short sleeps", "version by hand", logNormal, stalls),
		"transactions over items":     compared("few-hot-items", "2 of 20 items, 8 processes of 8", "txn, optimistic, prefetch", "transactions by hand", logNormal, stalls),
		"transactions of which":       compared("transactions", "transfers, Zipf, 8 processes of 8", "txn, optimistic, fair, prefetch", "transactions by hand", logNormal),
	} {
		_, line, _ := strings.Cut(string(document), "\n| "+row)
		line, _, _ = strings.Cut(line, "\n")
		var figures []string
		for _, of := range want {
			rows, err := rowsOf("../docs/results/"+of[0]+".csv", "^"+of[1]+"$", "^"+of[2]+"$")
			if err != nil || len(rows) != 1 {
				t.Fatalf("%v: %d rows, %v", of, len(rows), err)
			}
			figures = append(figures, rows[0]["changes/s"]+"/"+rows[0]["p99 ms"])
		}
		if got := regexp.MustCompile(`[\d.]+/[\d.]+`).FindAllString(line, -1); !slices.Equal(got, figures) {
			t.Errorf("%s: the figures are %q, measured were %q", row, got, figures)
		}
	}
}

// compared are a file's rows of ours and by hand: file, scenario and contender, in the even
// world and in those that the scenario's name ends in.
func compared(file, scenario, ours, byHand string, worlds ...string) (rows [][3]string) {
	for _, world := range append([]string{""}, worlds...) {
		rows = append(rows, [3]string{file, scenario + world, ours}, [3]string{file, scenario + world, byHand})
	}
	return rows
}

func TestTablesOfDocuments(t *testing.T) {
	folder := t.TempDir()
	text := "# how\nscenario,contender,changes/s,p99 ms\none,a,1,2\none,b,3,4\ntwo,a,5,6\n"
	if err := os.WriteFile(filepath.Join(folder, "r.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text = "scenario,contender,changes/s,\"changes/s, range\"\none,a,2,1 to 3\none,b,4,\n"
	if err := os.WriteFile(filepath.Join(folder, "s.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text = "scenario,contender,changes/s,\"changes/s, range\",requests\none,a,200,190 to 204,1\n\"one, log-normal\",a,100,80 to 110,2\n\"one, stalls\",b,4,4 to 4,3\n"
	if err := os.WriteFile(filepath.Join(folder, "w.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text = "goos: linux\nBenchmarkJobs/10_processes,_limit_1-2 \t 1 \t 31.25 jobs/s\t 2.000 RU/job\nBenchmarkJobs/idle-2 \t 1 \t 72.00 requests/min\nPASS\n"
	if err := os.WriteFile(filepath.Join(folder, "r.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text = "BenchmarkJobs/one-2 1 20 jobs/s 3 RU/job\nBenchmarkJobs/one-2 1 10 jobs/s 2 RU/job\nBenchmarkJobs/one-2 1 11 jobs/s 2 RU/job\n" +
		"BenchmarkJobs/one,_stalls-2 1 5 jobs/s 4 RU/job\nBenchmarkJobs/one,_stalls-2 1 4 jobs/s 4 RU/job\n"
	if err := os.WriteFile(filepath.Join(folder, "w.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for mark, want := range map[string]string{
		`from="r.csv" scenario="one" contender="" columns="p99 ms, changes/s"`:                                "|  | p99 ms | changes/s |\n| --- | --- | --- |\n| a | 2 | 1 |\n| b | 4 | 3 |\n",
		`from="r.csv" scenario="" contender="a" across="changes/s; p99 ms"`:                                   "|  | one | two |\n| --- | --- | --- |\n| a | 1; 2 | 5; 6 |\n",
		`from="r.csv" scenario="" contender="" columns="changes/s"`:                                           "|  |  | changes/s |\n| --- | --- | --- |\n| one | a | 1 |\n|  | b | 3 |\n| two | a | 5 |\n",
		`from="r.csv" scenario="three" contender="" columns="changes/s"`:                                      "no row matches",
		`from="r.csv" scenario="" contender="" columns="p50"`:                                                 "no column",
		`from="s.csv" scenario="" contender="" across="changes/s"`:                                            "|  | one |\n| --- | --- |\n| a | 2 (1–3) |\n| b | 4 |\n",
		`from="w.csv" scenario="^one$" contender="" worlds="log-normal" across="changes/s; requests; spread"`: "|  | one |\n| --- | --- |\n| a | 200/100; 1; ±20% |\n",
		`from="w.csv" scenario="^one$" contender="" worlds="stalls" across="changes/s"`:                       "stalls of one was not measured: a",
		`from="w.csv" scenario="two" contender="" worlds="stalls" across="changes/s"`:                         "no row matches",
		`from="r.csv" scenario="" contender="a" worlds="Pareto" across="changes/s"`:                           "was not measured",
		`from="r.txt" scenario="Jobs" contender="limit" columns="jobs/s,RU/job"`:                              "|  | jobs/s | RU/job |\n| --- | --- | --- |\n| 10 processes, limit 1 | 31.2 | 2.00 |\n",
		`from="w.txt" scenario="Jobs" contender="stalls" columns="jobs/s"`:                                    "|  | jobs/s |\n| --- | --- |\n| one, stalls | 4.00 (4.00–5.00) |\n",
		`from="w.txt" scenario="Jobs" contender="" worlds="stalls" columns="jobs/s, RU/job, spread"`:          "|  | jobs/s | RU/job | spread |\n| --- | --- | --- | --- |\n| one | 11.0/4.00 | 2.00/4.00 | ±82% |\n",
		`from="none.csv" scenario="" contender="" columns="changes/s"`:                                        "no such file",
		`from="r.csv" scenario="(" contender="" columns="changes/s"`:                                          "missing closing",
	} {
		document, err := fill("before\n<!-- table "+mark+" -->\nold\n<!-- end of table -->\nafter\n", folder)
		if err != nil {
			document = err.Error()
		}
		if !strings.Contains(document, want) {
			t.Errorf("%s: %q, want %q", mark, document, want)
		}
	}
}

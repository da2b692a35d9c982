package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tables of the documents have the figures of the files that runs have written.
func TestDocumentsHaveTheFiguresOfRuns(t *testing.T) {
	tables := 0
	for _, name := range []string{"../README.md", "../docs/performance.md", "../docs/choosing.md", "../docs/telemetry.md", "../docs/reliability.md"} {
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

func TestTablesOfDocuments(t *testing.T) {
	folder := t.TempDir()
	text := "# how\nscenario,contender,changes/s,p99 ms\none,a,1,2\none,b,3,4\ntwo,a,5,6\n"
	if err := os.WriteFile(filepath.Join(folder, "r.csv"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	text = "goos: linux\nBenchmarkJobs/10_processes,_limit_1-2 \t 1 \t 31.25 jobs/s\t 2.000 RU/job\nBenchmarkJobs/idle-2 \t 1 \t 72.00 requests/min\nPASS\n"
	if err := os.WriteFile(filepath.Join(folder, "r.txt"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for mark, want := range map[string]string{
		`from="r.csv" scenario="one" contender="" columns="p99 ms, changes/s"`:   "|  | p99 ms | changes/s |\n| --- | --- | --- |\n| a | 2 | 1 |\n| b | 4 | 3 |\n",
		`from="r.csv" scenario="" contender="a" across="changes/s; p99 ms"`:      "|  | one | two |\n| --- | --- | --- |\n| a | 1; 2 | 5; 6 |\n",
		`from="r.csv" scenario="" contender="" columns="changes/s"`:              "|  |  | changes/s |\n| --- | --- | --- |\n| one | a | 1 |\n|  | b | 3 |\n| two | a | 5 |\n",
		`from="r.csv" scenario="three" contender="" columns="changes/s"`:         "no row matches",
		`from="r.csv" scenario="" contender="" columns="p50"`:                    "no column",
		`from="r.txt" scenario="Jobs" contender="limit" columns="jobs/s,RU/job"`: "|  | jobs/s | RU/job |\n| --- | --- | --- |\n| 10 processes, limit 1 | 31.2 | 2.00 |\n",
		`from="none.csv" scenario="" contender="" columns="changes/s"`:           "no such file",
		`from="r.csv" scenario="(" contender="" columns="changes/s"`:             "missing closing",
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

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// planted is a runner whose nth run fails, or says what is wrong.
type planted struct {
	folder string
	says   string
	fails  int
	mu     sync.Mutex
	runs   []string // guarded by mu
}

func (p *planted) about() (commit, machine, results string) { return "abc", "here", p.folder }

func (p *planted) once(_ context.Context, t tier, seed uint64) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, t.again(seed))
	if len(p.runs) == p.fails {
		return "the history of it", errors.New("exit status 1")
	}
	return p.says, nil
}

func settings(t *testing.T, args ...string) options {
	t.Helper()
	o, err := parse(&bytes.Buffer{}, args)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheFirstFailureEndsASoak(t *testing.T) {
	p := &planted{folder: t.TempDir(), says: "12 requests, 3 faults (lost), 4 verdicts, 0 wrong, 1 unknown", fails: 4}
	var out bytes.Buffer
	err := shake(t.Context(), &out, settings(t, "-seed", "7", "-tiers", "updates,locks", "-for", "1h", "-beside", "1"), p)
	if err == nil || !strings.Contains(err.Error(), "the history of it") || !strings.Contains(err.Error(), "go test -count=1 -v -run 'UnderFaults' ./internal/suite/exclusion -seed=8") {
		t.Errorf("%v", err)
	}
	if len(p.runs) != 4 || p.runs[0] != "go test -count=1 -v -run 'FaultedUpdates' ./internal/suite/faults -rounds=1 -seed=7" {
		t.Errorf("%q", p.runs)
	}
	if !strings.Contains(out.String(), "ok     updates      -seed 7 ") || !strings.Contains(out.String(), "FAILED locks        -seed 8 ") {
		t.Error(out.String())
	}
	files, err := resultFiles(p.folder)
	if err != nil {
		t.Fatal(err)
	}
	all, err := sum(append(files, files...)) // of two days
	if err != nil {
		t.Fatal(err)
	}
	var csv bytes.Buffer
	if err := table(&csv, all); err != nil {
		t.Fatal(err)
	}
	if u := all["updates"]; u.runs != 4 || u.failed != 0 || u.counts["requests"] != 48 || u.counts["faults"] != 12 || all["locks"].failed != 2 {
		t.Errorf("%+v", u)
	}
	if !strings.Contains(csv.String(), `soak,"changes of all strategies, a quarter of all requests broken",4,0,0,48,12,16,,,,,4,0`) {
		t.Error(csv.String())
	}
	if !strings.HasSuffix(csv.String(), "\nsoak,all,8,0,2,72,18,24,,,,,6,0\n") {
		t.Error(csv.String())
	}
}

// A test that counts wrong verdicts has failed, whatever it says.
func TestWrongVerdictsEndASoak(t *testing.T) {
	p := &planted{folder: t.TempDir(), says: "12 requests, 4 verdicts, 1 wrong"}
	if err := shake(t.Context(), &bytes.Buffer{}, settings(t, "-tiers", "updates"), p); err == nil || !strings.Contains(err.Error(), "wrong verdicts") {
		t.Errorf("%v", err)
	}
}

func TestASoakEnds(t *testing.T) {
	p := &planted{folder: t.TempDir()}
	if err := shake(t.Context(), &bytes.Buffer{}, settings(t, "-for", "20ms"), p); err != nil || len(p.runs) == 0 {
		t.Errorf("%v, %d runs", err, len(p.runs))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p = &planted{folder: t.TempDir(), fails: 1}
	if err := shake(ctx, &bytes.Buffer{}, settings(t), p); err != nil || len(p.runs) != 0 {
		t.Errorf("%v, %d runs", err, len(p.runs))
	}
}

func TestCommandLines(t *testing.T) {
	for line, want := range map[string]string{"-tiers none": "no tier", "-for 0s": "above 0", "-beside 0": "above 0", "updates": "no flag"} {
		if _, err := parse(&bytes.Buffer{}, strings.Fields(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	name := filepath.Join(t.TempDir(), "soak-x.jsonl")
	if err := os.WriteFile(name, []byte("{\"tier\":\"updates\"}\n{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sum([]string{name}); err == nil || !strings.Contains(err.Error(), "without a tier") {
		t.Errorf("%v", err)
	}
}

// Every tier's tests are there, and take the seed that they are given.
func TestTiersRun(t *testing.T) {
	root, err := rootFolder()
	if err != nil {
		t.Fatal(err)
	}
	quick := tiers[4] // messages
	p, err := build(t.Context(), &bytes.Buffer{}, root, []tier{quick})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.remove)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	output, err := p.once(ctx, quick, 7)
	if err != nil || countsOf(output)["requests"] == 0 {
		t.Errorf("%v, %v:\n%s", err, countsOf(output), output)
	}
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"
)

// runner runs a tier once, and returns what its test prints.
type runner interface {
	once(ctx context.Context, t tier, seed uint64) (output string, err error)
	about() (commit, machine, results string) // what is noted with a result, and the folder of results
}

// programs are the tests of packages, built once.
type programs struct{ root, folder string }

func rootFolder() (string, error) {
	out, err := exec.Command("go", "env", "GOWORK").Output()
	root := filepath.Dir(strings.TrimSpace(string(out)))
	if err != nil || root == "." {
		return "", errors.Join(err, errors.New("run it in a clone of the repository, whose go.work it needs"))
	}
	return root, nil
}

func build(ctx context.Context, out io.Writer, root string, all []tier) (*programs, error) {
	folder, err := os.MkdirTemp("", "soak")
	if err != nil {
		return nil, err
	}
	p := &programs{root, folder}
	for _, t := range all {
		if _, err := os.Stat(p.of(t)); err == nil {
			continue
		}
		fmt.Fprintf(out, "building the tests of %s\n", t.in)
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", p.of(t), t.in)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			p.remove()
			return nil, fmt.Errorf("%s: %w\n%s", t.in, err, text)
		}
	}
	return p, nil
}

func (p *programs) remove() { _ = os.RemoveAll(p.folder) }

func (p *programs) of(t tier) string {
	return filepath.Join(p.folder, strings.ReplaceAll(strings.TrimPrefix(t.in, "./"), "/", "_"))
}

func (p *programs) once(ctx context.Context, t tier, seed uint64) (string, error) {
	cmd := exec.CommandContext(ctx, p.of(t), t.flags(seed)...)
	cmd.Dir = filepath.Join(p.root, t.in)
	cmd.Env = append(os.Environ(), "DYNAHOLD_PROOF="+t.proof())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (p *programs) about() (commit, machine, results string) {
	out, _ := exec.Command("git", "-C", p.root, "rev-parse", "--short", "HEAD").Output()
	return strings.TrimSpace(string(out)), fmt.Sprintf("%s/%s, %d cores, %s", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()), filepath.Join(p.root, "docs", "results")
}

func (t tier) proof() string {
	if t.full {
		return "full"
	}
	return ""
}

func (t tier) flags(seed uint64) []string {
	flags := append([]string{"-test.v", "-test.count=1", "-test.timeout=60m", "-test.run=" + t.run}, t.args...)
	if t.seed != "" {
		flags = append(flags, fmt.Sprintf("%s=%d", t.seed, seed))
	}
	return flags
}

// again is the command that repeats a run.
func (t tier) again(seed uint64) string {
	words := []string{"go test -count=1 -v -run '" + t.run + "'", t.in}
	if t.full {
		words[0] = "DYNAHOLD_PROOF=full " + words[0]
	}
	words = append(words, t.args...)
	if t.seed != "" {
		words = append(words, fmt.Sprintf("%s=%d", t.seed, seed))
	}
	return strings.Join(words, " ")
}

// shake runs the tiers by turns until the time is over, or one fails.
func shake(ctx context.Context, out io.Writer, o options, by runner) error {
	commit, machine, folder := by.about()
	if o.out == "" {
		o.out = filepath.Join(folder, "soak-"+time.Now().UTC().Format("2006-01-02")+".jsonl")
	}
	file, err := os.OpenFile(o.out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	s := &soak{options: o, out: out, results: json.NewEncoder(file), by: by, commit: commit, machine: machine, end: time.Now().Add(o.length)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var all sync.WaitGroup
	for range o.beside {
		all.Go(func() {
			if err := s.work(ctx); err != nil {
				s.fail(err)
				cancel()
			}
		})
	}
	all.Wait()
	return errors.Join(s.failed, file.Close())
}

// soak is a run of the program.
type soak struct {
	options
	out             io.Writer
	by              runner
	commit, machine string
	end             time.Time

	mu      sync.Mutex
	results *json.Encoder // guarded by mu
	next    int           // guarded by mu
	failed  error         // guarded by mu
}

// work makes runs until the time is over.
func (s *soak) work(ctx context.Context) error {
	for time.Now().Before(s.end) && ctx.Err() == nil {
		t, seed := s.turn()
		began := time.Now()
		output, err := s.by.once(ctx, t, seed)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was stopped, and says nothing
		}
		r := result{Tier: t.name, Seed: seed, Began: began.UTC(), Seconds: time.Since(began).Seconds(), Failed: err != nil, Counts: countsOf(output), Commit: s.commit, Machine: s.machine}
		if r.Counts["wrong"] > 0 && err == nil {
			err = errors.New("it has counted wrong verdicts, and passed")
			r.Failed = true
		}
		if told := s.tell(r); told != nil {
			return told
		}
		if err != nil {
			return fmt.Errorf("%s\n%s, seed %d: %w; repeat with\n\n\t%s", output, t.name, seed, err, t.again(seed))
		}
	}
	return nil
}

// turn is the next tier, and its seed: each round of all tiers has one more.
func (s *soak) turn() (tier, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.next
	s.next++
	return s.tiers[n%len(s.tiers)], s.seed + uint64(n/len(s.tiers)) //nolint:gosec // not negative
}

func (s *soak) tell(r result) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	for _, column := range columns {
		if n, some := r.Counts[column]; some {
			text += fmt.Sprintf("  %d %s", n, column)
		}
	}
	state := "ok"
	if r.Failed {
		state = "FAILED"
	}
	fmt.Fprintf(s.out, "%-6s %-12s -seed %-12d %6.1f s%s\n", state, r.Tier, r.Seed, r.Seconds, text)
	return s.results.Encode(r)
}

func (s *soak) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

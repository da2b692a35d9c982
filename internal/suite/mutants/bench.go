package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const module = "github.com/dynahold/dynahold"

// limit is how long the tests of one check may run: what takes longer is no narrow check.
const limit = 90 * time.Second

// bench runs mutants.
type bench struct {
	root  string // of the library's module
	temp  string
	known map[check]string // why a check fails without a mutant; "": it does not
}

func newBench(ctx context.Context) (*bench, error) {
	root, err := rootOf(ctx)
	if err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp("", "mutants")
	return &bench{root: root, temp: temp, known: map[check]string{}}, err
}

func (b *bench) close() { _ = os.RemoveAll(b.temp) }

// rootOf is the folder of the library's module.
func rootOf(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("where is %s? %w", module, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// verdict is what became of a mutant.
type verdict struct{ word, text string }

const (
	found    = "found"
	survives = "SURVIVES"
	stale    = "STALE"
	invalid  = "INVALID" // nothing can be said of it
)

// judge runs the tests that are meant to find a mutant, without it and with it.
func (b *bench) judge(ctx context.Context, m mutant) verdict {
	overlay, err := b.overlay(m)
	if err != nil {
		return verdict{stale, err.Error()}
	}
	why, known := b.known[m.by]
	if !known {
		why = b.sound(ctx, m.by)
		b.known[m.by] = why
	}
	if why != "" {
		return verdict{invalid, "its tests do not pass without it: " + why}
	}
	out, err := b.test(ctx, m.by.command(overlay))
	if err == nil {
		return verdict{survives, "no test finds it"}
	}
	return failure(out)
}

// sound says why a check fails without a mutant; "": it passes.
func (b *bench) sound(ctx context.Context, c check) string {
	out, err := b.test(ctx, c.command(""))
	switch {
	case err != nil:
		return failure(out).text
	case strings.Contains(out, "[no tests to run]"):
		return "there are none"
	}
	return ""
}

func (b *bench) test(ctx context.Context, args []string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var failed = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)

// failure tells from the output of tests that failed how they did.
func failure(out string) verdict {
	switch names := failed.FindAllStringSubmatch(out, -1); {
	case strings.Contains(out, "[build failed]"), strings.Contains(out, "[setup failed]"):
		return verdict{invalid, "it does not build:\n" + out}
	case strings.Contains(out, "panic: test timed out"):
		return verdict{invalid, "its tests do not end"}
	case names != nil:
		return verdict{found, names[len(names)-1][1]}
	case strings.Contains(out, "panic: "):
		return verdict{found, "a panic"}
	}
	return verdict{invalid, "its tests do not tell why they fail:\n" + out}
}

// overlay writes the mutated file, and says in a file for package go whose place it takes.
func (b *bench) overlay(m mutant) (string, error) {
	original := filepath.Join(b.root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	mutated, err := m.apply(string(text))
	if err != nil {
		return "", err
	}
	place := filepath.Join(b.temp, "mutated.go")
	if err := os.WriteFile(place, []byte(mutated), 0o600); err != nil {
		return "", err
	}
	says, err := json.Marshal(map[string]map[string]string{"Replace": {original: place}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(b.temp, "overlay.json")
	return overlay, os.WriteFile(overlay, says, 0o600)
}

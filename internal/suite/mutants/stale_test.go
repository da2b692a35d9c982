package main

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The list follows the code: each mutant stands in its file exactly once, and what it
// leaves is a program.
func TestNoMutantIsStale(t *testing.T) {
	root, err := rootOf(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	all := mutants()
	if len(all) < 40 {
		t.Errorf("%d mutants, of 40 at least", len(all))
	}
	names := map[string]bool{}
	for _, m := range all {
		if names[m.name] {
			t.Errorf("two mutants are called %q", m.name)
		}
		names[m.name] = true
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
		if err != nil {
			t.Error(err)
			continue
		}
		mutated, err := m.apply(string(text))
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
			continue
		}
		if mutated == string(text) {
			t.Errorf("%s: it changes nothing", m.name)
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, mutated, parser.SkipObjectResolution); err != nil {
			t.Errorf("%s: what it leaves is no program: %v", m.name, err)
		}
		if !hasTest(t, filepath.Join(root, filepath.FromSlash(m.by.dir)), m.by.test) {
			t.Errorf("%s: %s has no test %s", m.name, m.by.dir, m.by.test)
		}
	}
}

// hasTest reports whether a folder has a test with a name that matches the first part of
// an expression.
func hasTest(t *testing.T, dir, expression string) bool {
	first, _, _ := strings.Cut(expression, "/")
	name := regexp.MustCompile(first)
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range declared.FindAllSubmatch(text, -1) {
			if name.Match(found[1]) {
				return true
			}
		}
	}
	return false
}

var declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)

package main

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// What one import compiles is what its user has to trust.
func TestClosuresKeepTheirLimits(t *testing.T) {
	m := library(t)
	public, err := m.public()
	if err != nil {
		t.Fatal(err)
	}
	for _, found := range beyond(t, m, public) {
		t.Error(found)
	}
	for name := range limits {
		if _, err := m.compile(name); err != nil {
			t.Errorf("a limit for %s: %v", name, err)
		}
	}
}

// Tests are code too, and without a limit they only grow.
func TestTestsKeepTheirLimit(t *testing.T) {
	m := library(t)
	lines, err := m.tests()
	if err != nil {
		t.Fatal(err)
	}
	if n := total(lines); n > testsLimit+int(margin*testsLimit) {
		t.Errorf("%d lines of tests, the limit is %d: see go run ./internal/suite/closure -tests", n, testsLimit)
	}
	if lines["internal/suite/closure"] == 0 || lines["ticket"] == 0 || lines["jobs"] == 0 {
		t.Errorf("no tests were counted here or in packages of the library: %v", lines)
	}
}

// TestAPlantedImportIsFound sees that a limit refuses what it is there to refuse.
func TestAPlantedImportIsFound(t *testing.T) {
	for _, planted := range []struct{ file, text, want string }{
		{"mutex/planted.go", "package mutex\n\nimport _ \"" + module + "/internal/transaction\"\n", "mutex"},
		{"repo/planted.go", "package repo\n" + strings.Repeat("\nvar _ = 1", limits["repo"]/10), "repo"},
		{"repo/planted.go", "package repo\n" + strings.Repeat("\n// Nothing.\n", limits["repo"]), ""},
		{"repo/planted_test.go", "package repo\n" + strings.Repeat("\nvar _ = 1", limits["repo"]/10), ""},
		{"unlimited/planted.go", "package unlimited\n", "unlimited"},
	} {
		m := library(t)
		m.files = overlay{m.files, fstest.MapFS{planted.file: &fstest.MapFile{Data: []byte(planted.text)}}}
		folder, _, _ := strings.Cut(planted.file, "/")
		found := strings.Join(beyond(t, m, []string{folder}), "; ")
		if (planted.want == "") != (found == "") || !strings.HasPrefix(found, planted.want) {
			t.Errorf("%s: found %q, want it of %q", planted.file, found, planted.want)
		}
	}
}

func TestCodeLines(t *testing.T) {
	for text, want := range map[string]int{
		"":                                    0,
		"package p":                           1,
		"// Package p.\npackage p\n":          1,
		"package p\n\n/* a\nb */ var x = 1\n": 2,
		"package p\nvar x = `a\n\nb`\n":       4,
		"package p\nfunc f() {\n\t// why\n\tg() // how\n}\n": 4,
	} {
		if n := codeLines([]byte(text)); n != want {
			t.Errorf("%q has %d lines of code, not %d", text, n, want)
		}
	}
}

// beyond tells which packages compile more than they may.
func beyond(t *testing.T, m *tree, packages []string) (found []string) {
	t.Helper()
	for _, name := range packages {
		lines, err := m.closure(name)
		if err != nil {
			t.Fatal(err)
		}
		limit, there := limits[name]
		if n := total(lines); !there || n > limit+int(margin*float64(limit)) {
			found = append(found, fmt.Sprintf("%s compiles %d lines of code, its limit is %d: see go run ./internal/suite/closure %[1]s", name, n, limit))
		}
	}
	return found
}

func library(t *testing.T) *tree {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return &tree{os.DirFS(root)}
}

// overlay is files with some more.
type overlay struct {
	below fs.FS
	more  fstest.MapFS
}

func (o overlay) Open(name string) (fs.File, error) {
	if _, there := o.more[name]; there {
		return o.more.Open(name)
	}
	return o.below.Open(name)
}

// Glob finds the files of both.
func (o overlay) Glob(pattern string) ([]string, error) {
	below, err := fs.Glob(o.below, pattern)
	if err != nil {
		return nil, err
	}
	more, err := o.more.Glob(pattern)
	return append(below, more...), err
}

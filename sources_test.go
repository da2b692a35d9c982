package dynahold_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	pathpkg "path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

// A source is the import lines of a folder's Go files.
type source struct {
	imports     []string
	testImports []string // of its _test.go files
}

// goFiles reads the Go files of all modules of this repository, those of other
// systems and build tags too: what they import counts everywhere. It asks no go
// command, which would leave imports out (go list -find) or download the
// modules of the bench (go list).
func goFiles(t *testing.T) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			// Folders in which the go command looks for no packages.
			if path != "." && (name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_') {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			text, err := os.ReadFile(path)
			files[path] = &fstest.MapFile{Data: text}
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// sources returns the imports of each folder that has Go files.
func sources(t *testing.T, files fstest.MapFS) map[string]*source {
	t.Helper()
	folders := map[string]*source{}
	for path, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), path, file.Data, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		folder := folders[pathpkg.Dir(path)]
		if folder == nil {
			folder = &source{}
			folders[pathpkg.Dir(path)] = folder
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(path, "_test.go") {
				folder.testImports = append(folder.testImports, imported)
			} else {
				folder.imports = append(folder.imports, imported)
			}
		}
	}
	return folders
}

// rowOf returns the row of a folder, nil where it has none.
func rowOf(folder string) *row {
	for i, r := range layout {
		above, below := strings.CutSuffix(r.folder, "/...")
		if r.folder == folder || below && strings.HasPrefix(folder, above+"/") {
			return &layout[i]
		}
	}
	return nil
}

// public tells whether users may import the folder.
func public(folder string) bool {
	return !slices.ContainsFunc(strings.Split(folder, "/"), func(part string) bool {
		return part == "internal" || part == "examples" || part == "cmd"
	})
}

// allows tells whether production code of the row may import a folder of this
// module.
func (r *row) allows(folder string) bool {
	if target := rowOf(folder); target != nil && target.testOnly && !r.testOnly {
		return false
	}
	return slices.Contains(r.may, folder) || slices.Contains(r.may, "public") && public(folder)
}

// testsAllow is the same for the row's tests: they may also use the package
// itself, an engine, faults and histories. The root's tests compare the
// strategies and may import everything.
func (r *row) testsAllow(own, folder string) bool {
	if own == "." || folder == own || folder == "localdb" || r.allows(folder) || slices.Contains(r.tests, folder) {
		return true
	}
	target := rowOf(folder)
	return target != nil && target.testOnly
}

func oneOf(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

// split tells a folder of this module from a package of somebody else; both
// are empty for the standard library.
func split(path string) (folder, foreign string) {
	switch {
	case path == module:
		return ".", ""
	case strings.HasPrefix(path, module+"/"):
		return strings.TrimPrefix(path, module+"/"), ""
	case strings.Contains(strings.Split(path, "/")[0], "."):
		return "", path
	}
	return "", ""
}

// violations tells what the folders import against the table, one line each.
func violations(folders map[string]*source) []string {
	var found []string
	report := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	for own, s := range folders {
		r := rowOf(own)
		if r == nil {
			report("%s has no row in the import table: add one to imports_test.go, with its reason", own)
			continue
		}
		for _, path := range s.imports {
			folder, foreign := split(path)
			if folder != "" && !r.allows(folder) {
				report("%s must not import %s (%s)", own, folder, r.why)
			}
			if own == "internal/telemetry" && foreign == globalProviders {
				continue
			}
			if foreign != "" && r.module == "" && !oneOf(foreign, productionModules) && (!r.testOnly || !oneOf(foreign, testModules)) {
				report("%s must not import %s: the module stays small", own, foreign)
			}
		}
		for _, path := range s.testImports {
			folder, foreign := split(path)
			if folder != "" && !r.testsAllow(own, folder) {
				report("tests of %s must not import %s (%s)", own, folder, r.why)
			}
			if foreign != "" && r.module == "" && !oneOf(foreign, productionModules) && !oneOf(foreign, testModules) {
				report("tests of %s must not import %s: heavy test tools live in modules of their own", own, foreign)
			}
		}
	}
	for _, r := range layout {
		if folder, below := strings.CutSuffix(r.folder, "/..."); !below && folders[folder] == nil {
			report("%s has a row in the import table, and no Go files", folder)
		}
	}
	slices.Sort(found)
	return slices.Compact(found) // several files of a folder may import the same
}

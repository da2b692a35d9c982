// Closure prints how many lines of this module's code a program compiles that imports
// one of its packages: the fewer they are, the less must be trusted.
//
//	go run ./internal/suite/closure          # every public package
//	go run ./internal/suite/closure mutex    # one, with all that it imports
//	go run ./internal/suite/closure -tests   # the lines of tests, by folder
//
// Lines with code count, of the files that this machine would compile: no comments, no
// blank lines, no tests, and nothing of other modules. The tests hold the figures against
// limits.go.
package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, packages []string) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	m := &tree{files: os.DirFS(root)}
	if len(packages) == 1 && packages[0] == "-tests" {
		lines, err := m.tests()
		for _, of := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(out, "%7d  %s\n", lines[of], of)
		}
		fmt.Fprintf(out, "%7d  all tests, of at most %d\n", total(lines), testsLimit)
		return err
	}
	for _, name := range packages {
		lines, err := m.closure(name)
		if err != nil {
			return err
		}
		for _, of := range slices.Sorted(maps.Keys(lines)) {
			fmt.Fprintf(out, "%7d  %s\n", lines[of], of)
		}
		fmt.Fprintf(out, "%7d  %s, with all that it imports\n", total(lines), name)
	}
	if len(packages) > 0 {
		return nil
	}
	public, err := m.public()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%7s  %7s\n", "lines", "limit")
	for _, name := range public {
		lines, err := m.closure(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%7d  %7d  %s\n", total(lines), limits[name], name)
	}
	return nil
}

// moduleRoot is where the library's go.mod is: above the folder of this program's.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(folder, "imports_test.go")); missing == nil {
			return folder, nil
		}
		if parent := filepath.Dir(folder); parent != folder {
			folder = parent
			continue
		}
		err = fmt.Errorf("run it inside a clone of %s", module)
	}
	return "", err
}

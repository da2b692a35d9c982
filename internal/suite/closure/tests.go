package main

import (
	"io/fs"
	"path"
	"strings"
)

// tests counts the lines of the tests of all modules in the tree, by folder.
func (m *tree) tests() (map[string]int, error) {
	lines := map[string]int{}
	err := fs.WalkDir(m.files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name()[0] == '.' || entry.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := fs.ReadFile(m.files, name)
		lines[path.Dir(name)] += codeLines(text)
		return err
	})
	return lines, err
}

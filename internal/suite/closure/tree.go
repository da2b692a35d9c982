package main

import (
	"fmt"
	"go/build"
	"go/parser"
	"go/scanner"
	"go/token"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

const module = "github.com/dynahold/dynahold"

// tree is the module's files. It asks no go command: of a copy in memory it counts the
// same.
type tree struct{ files fs.FS }

// compiled is what a package contributes.
type compiled struct {
	lines   int
	imports []string // of this module, by folder
}

// closure is the lines of a package and of each of this module that it imports, by
// folder.
func (m *tree) closure(folder string) (map[string]int, error) {
	lines := map[string]int{}
	for left := []string{folder}; len(left) > 0; left = left[1:] {
		if _, known := lines[left[0]]; known {
			continue
		}
		p, err := m.compile(left[0])
		if err != nil {
			return nil, err
		}
		lines[left[0]] = p.lines
		left = append(left, p.imports...)
	}
	return lines, nil
}

func total(lines map[string]int) (n int) {
	for _, of := range lines {
		n += of
	}
	return n
}

// public are the packages at the root, which users may import; those with a go.mod of
// their own belong to other modules.
func (m *tree) public() (folders []string, err error) {
	entries, err := fs.ReadDir(m.files, ".")
	for _, e := range entries {
		if _, foreign := fs.Stat(m.files, path.Join(e.Name(), "go.mod")); !e.IsDir() || foreign == nil {
			continue
		}
		if p, err := m.compile(e.Name()); err == nil && p.lines > 0 {
			folders = append(folders, e.Name())
		}
	}
	return folders, err
}

// compile counts the lines of one package, and finds what it imports.
func (m *tree) compile(folder string) (p compiled, err error) {
	context := build.Default
	context.OpenFile = func(name string) (io.ReadCloser, error) { return m.files.Open(name) }
	context.JoinPath = path.Join
	names, err := fs.Glob(m.files, path.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		return p, fmt.Errorf("%s has no Go files: %w", folder, fs.ErrNotExist)
	}
	for _, name := range names {
		ours, err := context.MatchFile(folder, path.Base(name))
		if err != nil || !ours || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(m.files, name)
		if err != nil {
			return p, err
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly)
		if err != nil {
			return p, err
		}
		p.lines += codeLines(text)
		for _, spec := range parsed.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if inside, ok := strings.CutPrefix(imported, module+"/"); ok {
				p.imports = append(p.imports, inside)
			}
		}
	}
	return p, nil
}

// codeLines is how many lines of a file have something that is no comment.
func codeLines(text []byte) (n int) {
	files := token.NewFileSet()
	file := files.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0) // without its mode for comments it skips them
	for last := 0; ; {
		pos, kind, literal := s.Scan()
		if kind == token.EOF {
			return n
		}
		if kind == token.SEMICOLON && literal == "\n" {
			continue // the end of a line
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		n += end - max(first-1, last)
		last = end
	}
}

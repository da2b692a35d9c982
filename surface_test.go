package dynahold_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a public type embeds is in the hands of its users, with every method: a
// type of an internal package would let them break its promises.
func TestPublicTypesEmbedNothingInternal(t *testing.T) {
	for _, folder := range publicFolders(t) {
		files := token.NewFileSet()
		matches, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range matches {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			internal := map[string]bool{}
			for _, i := range file.Imports {
				path := strings.Trim(i.Path.Value, `"`)
				if folder, _ := split(path); folder != "" && !public(folder) {
					internal[path[strings.LastIndexByte(path, '/')+1:]] = true
				}
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok || !spec.Name.IsExported() {
					return true
				}
				if s, ok := spec.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						if len(field.Names) == 0 && mentions(field.Type, internal) {
							t.Errorf("%s: %s embeds a type of an internal package", files.Position(field.Pos()), spec.Name)
						}
					}
				}
				return true
			})
		}
	}
}

func publicFolders(t *testing.T) (folders []string) {
	t.Helper()
	for folder := range sources(t, goFiles(t)) {
		if r := rowOf(folder); folder != "." && public(folder) && r != nil && r.module == "" {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	if len(folders) < 8 {
		t.Fatalf("only %v are public: the test looks at the wrong place", folders)
	}
	return folders
}

// mentions reports whether a type is one of a package.
func mentions(typ ast.Expr, packages map[string]bool) (found bool) {
	ast.Inspect(typ, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if pkg, ok := sel.X.(*ast.Ident); ok && packages[pkg.Name] {
				found = true
			}
		}
		return !found
	})
	return found
}

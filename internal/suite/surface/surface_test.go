package surface_test

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dynahold/dynahold"

// Users can neither import nor name what is internal, and it changes without
// notice: no public signature, field or embedded type may mention it.
func TestPublicNamesMentionNothingInternal(t *testing.T) {
	load := loader(t)
	for _, path := range publicPackages(t) {
		pkg, err := load.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range internals(pkg) {
			t.Error(found)
		}
	}
}

// TestInternalTypesAreFound plants one declaration at a time in a package of its
// own, and sees that it is reported, or allowed where it should be.
func TestInternalTypesAreFound(t *testing.T) {
	load := loader(t)
	const good = ""
	for _, planted := range []struct{ text, want string }{
		{"type T struct { Core *ddb.Table }", "planted.T mentions ddb.Table"},
		{"type T struct { core *ddb.Table }", good},
		{"type T struct { *ddb.Table }", "planted.T mentions ddb.Table"},
		{"type T struct { in }; type in struct { Core *ddb.Table }", "planted.T mentions ddb.Table"},
		{"type t struct { Core *ddb.Table }", good},
		{"type T interface { ddb.Client }", "planted.T mentions ddb.Client"},
		{"type T interface { Get() ddb.Item }", "planted.T mentions ddb.Item"},
		{"type T = ddb.Table", "planted.T mentions ddb.Table"},
		{"type T[C ddb.Client] struct{}", "planted.T mentions ddb.Client"},
		{"type T struct{}; func (*T) Core() *ddb.Table { return nil }", "planted.T.Core mentions ddb.Table"},
		{"type T struct{}; func (T) core() *ddb.Table { return nil }", good},
		{"type T struct { in }; type in struct{}; func (in) Core() *ddb.Table { return nil }", "planted.T mentions ddb.Table"},
		{"func F(map[string][]func(chan ddb.Result)) {}", "planted.F mentions ddb.Result"},
		{"func F() iter.Seq[*ddb.Write] { return nil }", "planted.F mentions ddb.Write"},
		{"func F() in { return in{} }; type in struct{}; func (in) Core() *ddb.Table { return nil }", "planted.F mentions ddb.Table"},
		{"func F[C ddb.Client](C) {}", "planted.F mentions ddb.Client"},
		{"func f() ddb.Item { return nil }", good},
		{"var V = ddb.Refused", "planted.V mentions ddb.Outcome"},
		{"const C = ddb.Refused", "planted.C mentions ddb.Outcome"},
		{"func F() repo.Key { return repo.Key{} }", good},
	} {
		text := "package planted\n\nimport (\n\"iter\"\n\"" + module + "/internal/ddb\"\n\"" + module + "/repo\"\n)\n" +
			"var _ iter.Seq[ddb.Item]\nvar _ repo.Key\n" + planted.text
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, "planted.go", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		pkg, err := (&types.Config{Importer: load}).Check("planted", files, []*ast.File{file}, nil)
		if err != nil {
			t.Fatal(err)
		}
		found := internals(pkg)
		if planted.want == good && len(found) != 0 || planted.want != good && (len(found) == 0 || found[0] != planted.want) {
			t.Errorf("%s: found %q, want %q", planted.text, found, planted.want)
		}
	}
}

// loader imports what the go command has compiled.
func loader(t *testing.T) types.Importer {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}={{.Export}}"}
	args = append(args, publicPackages(t)...)
	out, err := exec.CommandContext(t.Context(), "go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	compiled := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		compiled[path] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(compiled[path])
	})
}

// internals tells which exported names of a package mention a type of an
// internal package of this module, one line each.
func internals(pkg *types.Package) (found []string) {
	for _, name := range pkg.Scope().Names() {
		object := pkg.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		report := func(name string) func(*types.TypeName) {
			return func(mentioned *types.TypeName) {
				found = append(found, fmt.Sprintf("%s mentions %s.%s", name, mentioned.Pkg().Name(), mentioned.Name()))
			}
		}
		s := surface{home: pkg, report: report(pkg.Name() + "." + name), seen: map[types.Type]bool{}}
		named, defined := object.Type().(*types.Named)
		if _, ok := object.(*types.TypeName); !ok || !defined || named.Obj() != object {
			s.visit(object.Type())
			continue
		}
		s.declaration(named)
		for method := range methods(named) {
			s.report = report(pkg.Name() + "." + name + "." + method.Name())
			s.visit(method.Type())
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// surface goes through what users can reach from one name.
type surface struct {
	home   *types.Package
	report func(*types.TypeName)
	seen   map[types.Type]bool
}

// visit looks at a type that a public name mentions.
func (s *surface) visit(typ types.Type) {
	if s.seen[typ] {
		return
	}
	s.seen[typ] = true
	switch typ := typ.(type) {
	case *types.Alias:
		if !s.refuse(typ.Obj()) {
			s.visit(typ.Rhs())
		}
	case *types.Named:
		for arg := range typ.TypeArgs().Types() {
			s.visit(arg)
		}
		if s.refuse(typ.Obj()) || typ.Obj().Pkg() != s.home || typ.Obj().Exported() {
			return // what is exported is looked at under its own name
		}
		s.declaration(typ)
		for method := range methods(typ) {
			s.visit(method.Type())
		}
	case *types.TypeParam:
		s.visit(typ.Constraint())
	case *types.Signature:
		for param := range typ.TypeParams().TypeParams() {
			s.visit(param)
		}
		s.visit(typ.Params())
		s.visit(typ.Results())
	case *types.Tuple:
		for v := range typ.Variables() {
			s.visit(v.Type())
		}
	case *types.Struct:
		for field := range typ.Fields() {
			if field.Exported() || field.Embedded() {
				s.visit(field.Type())
			}
		}
	case *types.Interface:
		for embedded := range typ.EmbeddedTypes() {
			s.visit(embedded)
		}
		for method := range typ.ExplicitMethods() {
			if method.Exported() {
				s.visit(method.Type())
			}
		}
	case *types.Union:
		for term := range typ.Terms() {
			s.visit(term.Type())
		}
	case *types.Map:
		s.visit(typ.Key())
		s.visit(typ.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays, channels
		s.visit(typ.Elem())
	}
}

// declaration looks at what stands in a type's declaration.
func (s *surface) declaration(named *types.Named) {
	for param := range named.TypeParams().TypeParams() {
		s.visit(param)
	}
	s.visit(named.Underlying())
}

// refuse reports a type of an internal package of this module.
func (s *surface) refuse(name *types.TypeName) bool {
	if name.Pkg() == nil {
		return false
	}
	if !strings.HasPrefix(name.Pkg().Path(), module+"/internal/") {
		return false
	}
	s.report(name)
	return true
}

// methods are a type's exported methods, those of what it embeds among them.
func methods(named *types.Named) func(yield func(*types.Func) bool) {
	return func(yield func(*types.Func) bool) {
		if types.IsInterface(named) {
			return // its declaration has them
		}
		for selection := range types.NewMethodSet(types.NewPointer(named)).Methods() {
			method, ok := selection.Obj().(*types.Func)
			if ok && method.Exported() && !yield(method) {
				return
			}
		}
	}
}

// publicPackages are those of the library's module that users may import.
func publicPackages(t *testing.T) (paths []string) {
	t.Helper()
	const ofTheLibrary = `{{if eq .Module.Path "` + module + `"}}{{.ImportPath}}{{end}}` // other modules stand below it
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", ofTheLibrary, module+"/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for path := range strings.Lines(string(out)) {
		if path = strings.TrimSpace(path); strings.HasPrefix(path, module+"/") && !strings.Contains(path, "/internal/") {
			paths = append(paths, path)
		}
	}
	if len(paths) < 8 {
		t.Fatalf("only %v are public: the test looks at the wrong place", paths)
	}
	return paths
}

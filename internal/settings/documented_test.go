package settings

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// docs/settings.md names every field of every configuration, and of which packages
// it is.
func TestEverySettingIsDocumented(t *testing.T) {
	built := map[string][]string{} // field -> packages
	for folder, name := range map[string]string{
		"lockedread": "Config", "optimistic": "Config", "nolock": "Config", "mutex": "Config", "once": "Config", "ticket": "Config", "semaphore": "Config", "repo": "TableConfig",
	} {
		for _, field := range fieldsOf(t, filepath.Join("..", "..", folder), name) {
			built[field] = append(built[field], folder)
		}
	}
	text, err := os.ReadFile("../../docs/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		documented[strings.Trim(cells[1], " `")] = strings.Split(strings.TrimSpace(cells[2]), ", ")
	}
	for field, packages := range built {
		slices.Sort(packages)
		slices.Sort(documented[field])
		if !slices.Equal(packages, documented[field]) {
			t.Errorf("%s: a setting of %v, documented for %v", field, packages, documented[field])
		}
		delete(documented, field)
	}
	for field := range documented {
		t.Errorf("%s: documented, but no setting", field)
	}
}

// fieldsOf are the fields of a struct, read from the sources of its package.
func fieldsOf(t *testing.T, dir, name string) (fields []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != name {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					for _, id := range field.Names {
						fields = append(fields, id.Name)
					}
				}
			}
			return false
		})
	}
	if len(fields) == 0 {
		t.Fatalf("no struct %s in %s", name, dir)
	}
	return fields
}

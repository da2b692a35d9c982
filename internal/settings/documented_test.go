package settings

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/settings.md names every field of every configuration, of which packages it is,
// and the defaults that are numbers or times as the field's comment has them.
func TestEverySettingIsDocumented(t *testing.T) {
	built := map[string][]string{}    // field -> packages
	defaults := map[string][]string{} // field -> what comments say
	for folder, name := range map[string]string{
		"lockedread": "Config", "optimistic": "Config", "nolock": "Config", "delegate": "Config", "mutex": "Config", "once": "Config", "ticket": "Config", "semaphore": "Config", "jobs": "Config", "repo": "TableConfig",
	} {
		for field, comment := range fieldsOf(t, filepath.Join("..", "..", folder), name) {
			built[field] = append(built[field], folder)
			for _, found := range defaultOf.FindAllStringSubmatch(strings.Join(strings.Fields(comment), " "), -1) {
				defaults[field] = append(defaults[field], found[1])
			}
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
		field := strings.Trim(cells[1], " `")
		documented[field] = strings.Split(strings.TrimSpace(cells[2]), ", ")
		for _, value := range defaults[field] {
			if !strings.Contains(cells[3]+" ", " "+value+" ") && !strings.Contains(cells[3], " "+value+",") {
				t.Errorf("%s: default %s in a comment, documented:%s", field, value, cells[3])
			}
		}
	}
	if len(defaults) < 8 {
		t.Errorf("defaults of %d settings were found in comments: the test looks at the wrong place", len(defaults))
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

// defaultOf is a default in a comment, but 0, which the document has in words.
var defaultOf = regexp.MustCompile(`\bDefault:? ([1-9]\d*(?: (?:ms|s|min|h|days))?)\b`)

// fieldsOf are the fields of a struct with their comments, read from the sources of its
// package.
func fieldsOf(t *testing.T, dir, name string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
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
						fields[id.Name] = field.Doc.Text()
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

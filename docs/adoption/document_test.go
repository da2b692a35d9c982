package adoption

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheDocumentShowsWhatRuns compares the programs of docs/migration.md with those that the tests here run, and
// that the library's own compile.
func TestTheDocumentShowsWhatRuns(t *testing.T) {
	document := string(must(os.ReadFile("../migration.md"))(t))
	shown := map[string]bool{}
	for _, name := range must(filepath.Glob("*_test.go"))(t) {
		rest := string(must(os.ReadFile(name))(t))
		for {
			_, after, found := strings.Cut(rest, "\n// shown\n")
			if !found {
				break
			}
			code, after, ended := strings.Cut(after, "\n// end of what is shown\n")
			if !ended {
				t.Fatalf("%s: what is shown has no end", name)
			}
			code = strings.ReplaceAll(strings.TrimSpace(code), " //nolint:errcheck // ", " // ")
			rest, shown[code] = after, true
		}
	}
	for code := range shown {
		if !strings.Contains(document, "```go\n"+code+"\n```\n") {
			t.Errorf("docs/migration.md does not show:\n%s", code)
		}
	}
	compiled := strings.ReplaceAll(string(must(os.ReadFile("../../internal/suite/documents/snippets_test.go"))(t)), "\n\t", "\n")
	for _, part := range strings.Split(document, "```go\n")[1:] {
		code, _, _ := strings.Cut(part, "\n```\n")
		if !shown[code] && !strings.Contains(compiled, code) {
			t.Errorf("docs/migration.md shows what nothing compiles:\n%s", code)
		}
	}
}

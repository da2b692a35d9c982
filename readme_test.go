package dynahold_test

import (
	"os"
	"strings"
	"testing"
)

// TestReadmeShowsTheQuickstart keeps the README's first program the one that
// is compiled and run.
func TestReadmeShowsTheQuickstart(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("examples/quickstart/main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(program), "\n") // without the package comment
	if !strings.Contains(string(readme), "```go\n"+code+"```") {
		t.Error("the README's first program differs from examples/quickstart/main.go")
	}
}

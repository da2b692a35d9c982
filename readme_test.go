package dynahold_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
)

// TestReadmeShowsTheQuickstart keeps the README's first program the one that
// is compiled and run.
func TestReadmeShowsTheQuickstart(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "examples/quickstart/main.go"), "\n") // without the package comment
	if !strings.Contains(read(t, "README.md"), "```go\n"+code+"```") {
		t.Error("the README's first program differs from examples/quickstart/main.go")
	}
}

// The other programs in documents are those of snippets_test.go, which are
// compiled.
func TestDocumentsShowWhatIsCompiled(t *testing.T) {
	compiled := read(t, "snippets_test.go")
	for name, documents := range map[string][]string{
		"readmeTransaction": {"README.md"}, "readmeApply": {"README.md"}, "readmeOnce": {"README.md"}, "readmeOnceDo": {"README.md"},
		"packageMutex": {"mutex/doc.go"}, "packageTicket": {"ticket/doc.go"}, "packageSemaphore": {"semaphore/doc.go"},
		"packagePessimistic": {"pessimistic/doc.go"}, "packageOptimistic": {"optimistic/doc.go"}, "packageNolock": {"nolock/doc.go"},
		"packageLockedread": {"lockedread/doc.go"}, "migrationMutex": {"docs/migration.md"},
	} {
		_, body, ok := strings.Cut(compiled, "func "+name+"(")
		_, body, shown := strings.Cut(body, "\t// shown\n")
		body, _, ended := strings.Cut(body, "\n\treturn err\n}\n")
		if !ok || !shown || !ended {
			t.Fatalf("%s is not in snippets_test.go, or has another form", name)
		}
		var code strings.Builder
		for line := range strings.Lines(body + "\n") {
			if strings.HasPrefix(line, "\t_ = ") { // what the document leaves to its reader to use
				continue
			}
			code.WriteString(strings.TrimPrefix(line, "\t"))
		}
		shownCode := strings.ReplaceAll(code.String(), " //nolint:errcheck // ", " // ")
		for _, document := range documents {
			if !strings.Contains(strings.ReplaceAll(read(t, document), "\n//\t", "\n"), shownCode) {
				t.Errorf("%s does not show what %s compiles:\n%s", document, name, shownCode)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The programs are used here so that they stay: nothing calls them.
var _ = []any{
	func() error { return readmeTransaction(context.Background(), nil, nil, nil, order{}) },
	func() error { return readmeApply(context.Background(), nil, 1) },
	func() error { return readmeOnce(context.Background(), nil, nil, message{}) },
	func() error { return readmeOnceDo(context.Background(), nil, nil, message{}) },
	func(c mutex.Client) error { return packageMutex(context.Background(), c, nil) },
	func(c repo.Client) error { return packageTicket(context.Background(), c, nil) },
	func(c semaphore.Client) error { return packageSemaphore(context.Background(), c, nil) },
	func(c mutex.Client) error { return migrationMutex(context.Background(), c) },
	func() error { return packagePessimistic(context.Background(), nil) },
	func() error { return packageOptimistic(context.Background(), nil) },
	func() error { return packageNolock(context.Background(), nil, 1) },
	func() error { return packageLockedread(context.Background(), nil) },
}

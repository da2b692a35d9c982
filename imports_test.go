package dynahold_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/dynahold/dynahold"

// A row says what the production code of a folder may import of this module.
type row struct {
	folder string   // "examples/..." stands for every folder below
	may    []string // "public" stands for every package that users may import
	why    string
	// tests are what the folder's tests may import beside: those that show how
	// it behaves towards another strategy on the same item.
	tests []string
	// module is where the folder's own go.mod stands: what its code imports from
	// outside is its own affair.
	module string
	// testOnly packages serve tests: no production code may import them, and
	// they may use what only tests may use.
	testOnly bool
}

// layout is the import table. A new folder gets a row, with its reason; a new
// entry in a row is a decision about the design.
var layout = []row{
	{folder: ".", why: "documentation only; its tests run one suite over all strategies"},
	{folder: "repo", may: []string{"internal/ddb"}, why: "the vocabulary: knows how to send, knows no strategy"},
	{folder: "internal/ddb", why: "the only home of sending, retrying and judging conditional writes; knows no types of users"},
	{folder: "internal/baton", why: "one voice per item within a process: memory only"},
	{folder: "internal/batch", may: []string{"repo", "internal/ddb", "internal/guard"}, why: "one write for the changes of several callers, shared by lockedread and optimistic"},
	{folder: "internal/load", may: []string{"localdb", "public"}, why: "the harness of the bench and of dynahold compare; runs every strategy"},
	{folder: "internal/recent", why: "a bounded memory of what was used last: memory only"},
	{folder: "internal/guard", may: []string{"repo", "internal/ddb", "internal/recent"}, why: "waiting for others, with its settings, and writes by those who hold no lock; knows no strategy"},
	{folder: "internal/lease", may: []string{"repo"}, why: "deadline, renewal and context of whatever is held; knows no request"},
	{folder: "internal/pace", why: "when to look again at a line in which one waits: arithmetic only"},
	{folder: "internal/hold", may: []string{"repo", "internal/ddb", "internal/guard", "internal/lease", "internal/pace", "internal/recent"}, why: "the item lock without types of users, shared by lockedread and mutex"},
	{folder: "lockedread", may: []string{"repo", "internal/baton", "internal/batch", "internal/ddb", "internal/guard", "internal/hold", "internal/lease"}, tests: []string{"optimistic"}, why: "the item-lock protocol"},
	{folder: "nolock", may: []string{"repo", "internal/ddb", "internal/guard"}, tests: []string{"pessimistic"}, why: "a strategy: knows no other strategy"},
	{folder: "optimistic", may: []string{"repo", "lockedread", "internal/baton", "internal/batch", "internal/ddb", "internal/guard", "internal/recent"}, tests: []string{"pessimistic"}, why: "a strategy: knows no other strategy; the lock only where it is fair, for items that many want"},
	{folder: "pessimistic", may: []string{"repo", "lockedread", "internal/ddb", "internal/guard"}, why: "the strategy built on the item lock"},
	{folder: "mutex", may: []string{"repo", "internal/ddb", "internal/guard", "internal/hold", "internal/lease"}, why: "named locks: rows that are nothing but the item lock"},
	{folder: "ticket", may: []string{"repo", "internal/ddb", "internal/guard", "internal/hold", "internal/lease", "internal/pace"}, why: "the queue lock: an item of its own kind"},
	{folder: "semaphore", may: []string{"repo", "internal/ddb", "internal/guard", "internal/hold", "internal/lease"}, why: "permits and jobs: items of their own kind"},
	{folder: "localdb", why: "an engine for tests: must be usable by tests of every package above"},
	{folder: "examples/internal/crew", why: "processes that start, pause and kill each other; knows nothing of what an example shows"},
	{folder: "examples/...", may: []string{"public", "examples/internal/crew"}, why: "what a user can write, and of each example only its own lesson"},
	{folder: "cmd/dynahold", may: []string{"public", "internal/load", "cmd/dynahold/internal/compare"}, module: "cmd/dynahold", why: "everything that the tool does, the library can do; compare measures as the bench does"},
	{folder: "cmd/dynahold/internal/compare", may: []string{"internal/load"}, module: "cmd/dynahold", why: "the judgement of what was measured; knows no terminal"},
	{folder: "bench", may: []string{"public", "internal/load"}, module: "bench", why: "peers and measurements"},
	{folder: "docs/tablecheck", may: []string{"public"}, module: "docs/tablecheck", why: "the templates of docs/tables.md against what the packages make"},
	{folder: "internal/fault", testOnly: true, why: "faulty transport for tests"},
	{folder: "internal/rig", may: []string{"internal/fault", "localdb"}, testOnly: true, why: "an engine, a table and a client that can be broken, for tests"},
	{folder: "internal/history", testOnly: true, why: "histories for the linearizability checker"},
}

// What may come from outside the standard library, by import path or prefix of
// it. Of OpenTelemetry the interfaces only: the SDK is the program's choice.
var (
	productionModules = []string{
		"github.com/aws/aws-sdk-go-v2",
		"github.com/aws/smithy-go",
		"go.opentelemetry.io/otel/attribute",
		"go.opentelemetry.io/otel/codes",
		"go.opentelemetry.io/otel/metric",
		"go.opentelemetry.io/otel/trace",
	}
	testModules = []string{
		"github.com/anishathalye/porcupine",
		"github.com/google/go-cmp",
		"go.uber.org/goleak",
	}
)

// A listedPackage is what go list tells about a package.
type listedPackage struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p listedPackage) folder() string {
	if p.ImportPath == module {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, module+"/")
}

// listPackages lists the packages of a module of this repository. It resolves
// nothing, so that nothing need be downloaded.
func listPackages(t *testing.T, module string) []listedPackage {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-find", "-json=ImportPath,Imports,TestImports,XTestImports", "./...")
	list.Dir = module
	out, err := list.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v: %s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []listedPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listedPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// rowOf returns the row of a folder, nil where it has none.
func rowOf(folder string) *row {
	for i, r := range layout {
		above, below := strings.CutSuffix(r.folder, "/...")
		if r.folder == folder || below && strings.HasPrefix(folder, above+"/") {
			return &layout[i]
		}
	}
	return nil
}

// public tells whether users may import the folder.
func public(folder string) bool {
	return !slices.ContainsFunc(strings.Split(folder, "/"), func(part string) bool {
		return part == "internal" || part == "examples" || part == "cmd"
	})
}

// allows tells whether production code of the row may import a folder of this
// module.
func (r *row) allows(folder string) bool {
	if target := rowOf(folder); target != nil && target.testOnly && !r.testOnly {
		return false
	}
	return slices.Contains(r.may, folder) || slices.Contains(r.may, "public") && public(folder)
}

// testsAllow is the same for the row's tests: they may also use the package
// itself, an engine, faults and histories. The root's tests compare the
// strategies and may import everything.
func (r *row) testsAllow(own, folder string) bool {
	if own == "." || folder == own || folder == "localdb" || r.allows(folder) || slices.Contains(r.tests, folder) {
		return true
	}
	target := rowOf(folder)
	return target != nil && target.testOnly
}

func oneOf(path string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool {
		return path == prefix || strings.HasPrefix(path, prefix+"/")
	})
}

// split tells a folder of this module from a package of somebody else; both
// are empty for the standard library.
func split(path string) (folder, foreign string) {
	switch {
	case path == module:
		return ".", ""
	case strings.HasPrefix(path, module+"/"):
		return strings.TrimPrefix(path, module+"/"), ""
	case strings.Contains(strings.Split(path, "/")[0], "."):
		return "", path
	}
	return "", ""
}

func TestImportsFollowTheTable(t *testing.T) {
	packages := listPackages(t, ".")
	for _, r := range layout {
		if r.module == r.folder {
			packages = append(packages, listPackages(t, r.module)...)
		}
	}
	for _, p := range packages {
		own := p.folder()
		r := rowOf(own)
		if r == nil {
			t.Errorf("%s has no row in the import table: add one to imports_test.go, with its reason", own)
			continue
		}
		for _, path := range p.Imports {
			folder, foreign := split(path)
			if folder != "" && !r.allows(folder) {
				t.Errorf("%s must not import %s (%s)", own, folder, r.why)
			}
			if foreign != "" && r.module == "" && !oneOf(foreign, productionModules) && (!r.testOnly || !oneOf(foreign, testModules)) {
				t.Errorf("%s must not import %s: the module stays small", own, foreign)
			}
		}
		for _, path := range slices.Concat(p.TestImports, p.XTestImports) {
			folder, foreign := split(path)
			if folder != "" && !r.testsAllow(own, folder) {
				t.Errorf("tests of %s must not import %s (%s)", own, folder, r.why)
			}
			if foreign != "" && r.module == "" && !oneOf(foreign, productionModules) && !oneOf(foreign, testModules) {
				t.Errorf("tests of %s must not import %s: heavy test tools live in modules of their own", own, foreign)
			}
		}
	}
}

// The rules themselves, so that a slip in them cannot let everything pass.
func TestImportRules(t *testing.T) {
	cases := []struct {
		own, folder       string
		production, tests bool
	}{
		{"nolock", "repo", true, true},
		{"nolock", "optimistic", false, false},
		{"nolock", "pessimistic", false, true},
		{"nolock", "lockedread", false, false},
		{"nolock", "internal/fault", false, true},
		{"pessimistic", "lockedread", true, true},
		{"repo", "nolock", false, false},
		{"localdb", "repo", false, false},
		{"examples/inventory", "optimistic", true, true},
		{"examples/inventory", "localdb", true, true},
		{"examples/inventory", "internal/ddb", false, false},
		{"examples/inventory", "examples/hashchain", false, false},
		{"examples/leader", "examples/internal/crew", true, true},
		{"examples/internal/crew", "mutex", false, false},
		{"cmd/dynahold", "examples/internal/crew", false, false},
		{"cmd/dynahold", "internal/history", false, true},
		{"cmd/dynahold", "internal/ddb", false, false},
		{"bench", "internal/load", true, true},
		{"bench", "internal/hold", false, false},
		{"internal/fault", "internal/ddb", false, false},
		{".", "nolock", false, true},
	}
	for _, c := range cases {
		r := rowOf(c.own)
		if r == nil {
			t.Errorf("%s has no row", c.own)
			continue
		}
		if got := r.allows(c.folder); got != c.production {
			t.Errorf("%s importing %s: %v", c.own, c.folder, got)
		}
		if got := r.testsAllow(c.own, c.folder); got != c.tests {
			t.Errorf("tests of %s importing %s: %v", c.own, c.folder, got)
		}
	}
	for _, folder := range []string{"util", "repository", "examples", "internal"} {
		if r := rowOf(folder); r != nil {
			t.Errorf("%s has the row of %s", folder, r.folder)
		}
	}
}

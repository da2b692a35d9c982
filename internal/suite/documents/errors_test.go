package documents_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/delegate"
	"github.com/dynahold/dynahold/direct"
	"github.com/dynahold/dynahold/internal/link"
	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/jobs"
	"github.com/dynahold/dynahold/mutex"
	"github.com/dynahold/dynahold/nolock"
	"github.com/dynahold/dynahold/once"
	"github.com/dynahold/dynahold/repo"
	"github.com/dynahold/dynahold/semaphore"
	"github.com/dynahold/dynahold/ticket"
	"github.com/dynahold/dynahold/txn"
)

// sentinels are the errors of the library, by the names that docs/errors.md gives them.
var sentinels = map[string]error{
	"ErrNotFound": repo.ErrNotFound, "ErrExists": repo.ErrExists, "ErrConflict": repo.ErrConflict, "ErrCondition": repo.ErrCondition, "ErrStale": repo.ErrStale, "ErrMismatch": repo.ErrMismatch, "ErrNotUnique": repo.ErrNotUnique,
	"ErrLocked": repo.ErrLocked, "ErrLockExpired": repo.ErrLockExpired, "ErrLockLost": repo.ErrLockLost, "ErrReleased": repo.ErrReleased, "ErrNotHeld": repo.ErrNotHeld,
	"ErrOutcomeUnknown": repo.ErrOutcomeUnknown, "ErrDone": repo.ErrDone, "ErrSchema": repo.ErrSchema, "ErrKey": repo.ErrKey, "ErrPage": repo.ErrPage, "ErrFixed": repo.ErrFixed,
	"ErrTooLarge": repo.ErrTooLarge, "ErrNoTable": repo.ErrNoTable, "ErrDenied": repo.ErrDenied, "ErrConfig": repo.ErrConfig, "ErrNested": repo.ErrNested, "ErrNoTransactions": repo.ErrNoTransactions,
	"semaphore.ErrBusy": semaphore.ErrBusy, "semaphore.ErrClosed": semaphore.ErrClosed,
	"jobs.ErrBusy": jobs.ErrBusy, "jobs.ErrNoWork": jobs.ErrNoWork, "jobs.ErrClosed": jobs.ErrClosed,
	"mutex.ErrClosed": mutex.ErrClosed, "delegate.ErrRepeated": delegate.ErrRepeated, "ticket.ErrClosed": ticket.ErrClosed, "nolock.ErrAhead": nolock.ErrAhead, "once.ErrNoResult": once.ErrNoResult,
	"txn.ErrTooLarge": txn.ErrTooLarge, "direct.ErrOption": direct.ErrOption,
}

// docs/errors.md has every error of the packages that programs use, says of each what
// repo.Retryable says, and of what was done anyway what repo.VerdictOf says.
func TestTheDocumentOnErrors(t *testing.T) {
	text, err := os.ReadFile("../../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`((?:\\w+\\.)?Err\\w+)`")
	documented := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, found := range name.FindAllStringSubmatch(cells[1], -1) {
			e, known := sentinels[found[1]]
			if documented[found[1]] = true; strings.HasPrefix(found[1], "localdb.") {
				continue // of tests
			} else if !known {
				t.Errorf("%s: no error of the library", found[1])
				continue
			}
			if yes := strings.HasPrefix(strings.TrimSpace(cells[3]), "yes"); yes != repo.Retryable(e) {
				t.Errorf("%s: repeat? %v, repo.Retryable says %v", found[1], cells[3], !yes)
			}
			if written := strings.Contains(cells[2], "completed"); written != (repo.VerdictOf(e) == repo.Written) {
				t.Errorf("%s: %v, repo.VerdictOf says %v", found[1], cells[2], repo.VerdictOf(e))
			}
		}
	}
	for _, folder := range []string{"repo", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "txn", "once", "mutex", "ticket", "semaphore", "jobs", "direct", "unique", "localdb"} {
		for _, e := range declared(t, folder) {
			if documented[e] { // also by another name, as jobs.ErrExists
				continue
			}
			if folder != "repo" || !strings.HasPrefix(e, "Err") {
				e = folder + "." + e
			}
			if !documented[e] && !strings.Contains(string(text), "`*"+e+"`") {
				t.Errorf("%s is not in docs/errors.md", e)
			}
		}
	}
}

// declared are the names of the errors that a package declares.
func declared(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../../..", folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", folder, len(files), err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			d, ok := d.(*ast.GenDecl)
			if !ok || strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, id := range spec.Names {
						if d.Tok == token.VAR && strings.HasPrefix(id.Name, "Err") {
							names = append(names, id.Name)
						}
					}
				case *ast.TypeSpec:
					if spec.Name.IsExported() && strings.HasSuffix(spec.Name.Name, "Error") {
						names = append(names, spec.Name.Name)
					}
				}
			}
		}
	}
	return names
}

// What telemetry calls the errors of resources.
func TestErrorTypes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&semaphore.BusyError{Resource: "r", Limit: 1}, "locked"}, // for those who wait
		{&jobs.BusyError{Resource: "r", Limit: 1}, "locked"},
		{fmt.Errorf("%w: it has jobs", semaphore.ErrBusy), "busy"},
		{jobs.ErrNoWork, "no_work"},
	} {
		rig.Equal(t, link.ErrorType(c.err), c.want, "%v", c.err)
	}
}

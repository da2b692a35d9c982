package wire

import (
	"context"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/rig"
	"github.com/dynahold/dynahold/repo"
)

func TestMain(m *testing.M) { rig.Main(m) }

var update = flag.Bool("update", false, "write testdata/wire.golden anew")

// lease is so long that nothing is renewed and no attempt is given up while a
// test runs, however slow the machine.
const lease = time.Hour

// An operation is prepared on an empty table name; what it returns then is
// recorded.
type operation struct {
	name     string
	prepare  func(t *testing.T, b *bench) func() error
	anyOrder bool // it sends requests at the same time
	looks    bool // it reads until it sees something: its reads, whose number is a matter of chance, are left out, and queries are there once
	again    bool // it reads again while a write is slow: those reads are left out
}

// TestWire compares what every public operation sends with the golden file.
func TestWire(t *testing.T) {
	var all []operation
	for _, of := range [][]operation{tables(), nolockOperations(), optimisticOperations(), delegateOperations(), pessimisticOperations(), lockedreadOperations(),
		transactionOperations(), mutexOperations(), queuedMutexOperations(), onceOperations(), ticketOperations(), permitOperations(), jobOperations(), deadOperations(), roleOperations(), lineOperations()} {
		all = append(all, of...)
	}
	const golden = "testdata/wire.golden"
	blocks := make([]string, len(all))
	t.Run("operations", func(t *testing.T) {
		for i, c := range all {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				blocks[i] = block(t, c)
			})
		}
	})
	if t.Failed() {
		return
	}
	got := strings.Join(blocks, "\n")
	if *update {
		rig.Is(t, os.WriteFile(golden, []byte(got), 0o600))
		return
	}
	file := rig.Must(os.ReadFile(golden))(t)
	want := map[string]string{}
	for _, text := range strings.Split(string(file), "\n=== ") {
		name, _, _ := strings.Cut(strings.TrimPrefix(text, "=== "), "\n")
		want[name] = strings.TrimPrefix(strings.TrimSpace(text), "=== ")
	}
	for i, c := range all {
		got := strings.TrimPrefix(strings.TrimSpace(blocks[i]), "=== ")
		if d := difference(want[c.name], got); d != "" {
			t.Errorf("%s (- golden, + sent):\n%s", c.name, d)
		}
		delete(want, c.name)
	}
	for name := range want {
		t.Errorf("the golden file has %q, which is no operation", name)
	}
	if t.Failed() {
		t.Log("if this is meant: go test ./internal/suite/wire -update, and review the file")
	}
}

// difference is the lines that one of two texts has alone, or where they differ
// first if they have the same.
func difference(want, got string) string {
	if want == got {
		return ""
	}
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out strings.Builder
	for _, line := range w {
		if !slices.Contains(g, line) {
			out.WriteString("- " + line + "\n")
		}
	}
	for _, line := range g {
		if !slices.Contains(w, line) {
			out.WriteString("+ " + line + "\n")
		}
	}
	if out.Len() == 0 {
		return "the same lines in another order or number; sent:\n" + got
	}
	return out.String()
}

// item is what the operations keep.
type item struct {
	ID      string `dynamodbav:"id" repo:"pk"`
	Seq     int    `dynamodbav:"seq" repo:"sk"`
	Balance int    `dynamodbav:"balance"`
	Note    string `dynamodbav:"note,omitempty"`
	At      int64  `dynamodbav:"at" repo:"eventtime"`
	By      string `dynamodbav:"by,omitempty" repo:"eventid"`
	Version int64  `dynamodbav:"version" repo:"version"`
}

var (
	key   = repo.Key{Partition: "p", Sort: 1}
	first = item{ID: "p", Seq: 1, Balance: 7, Note: "first", At: 10, By: "e1"}
	next  = item{ID: "p", Seq: 1, Balance: 8, At: 11, By: "e2"}
)

// addOne is a change.
func addOne(_ context.Context, i *item) error { i.Balance++; i.At++; return nil }

// table makes the table of the items.
func (b *bench) table(t *testing.T) *repo.Table[item] {
	t.Helper()
	table := rig.Must(repo.NewTable[item](b.Client, b.Table, repo.TableConfig{AttemptTimeout: time.Minute}))(t)
	rig.Is(t, table.EnsureTable(t.Context()))
	return table
}

// tables are the operations of repo itself.
func tables() []operation {
	return []operation{
		{name: "repo.Table.Get", prepare: func(t *testing.T, b *bench) func() error {
			table := stored(t, b)
			return func() error { _, err := table.Get(t.Context(), key); return err }
		}},
		{name: "repo.Table.Query", prepare: func(t *testing.T, b *bench) func() error {
			table := stored(t, b)
			return func() error {
				for _, err := range table.Query(t.Context(), "p", repo.SortBetween(0, 5), repo.Descending(), repo.PageSize(7)) {
					if err != nil {
						return err
					}
				}
				return nil
			}
		}},
		{name: "repo.KeyTable.Inspect", prepare: func(t *testing.T, b *bench) func() error {
			table := stored(t, b)
			return func() error { _, err := table.Inspect(t.Context(), key); return err }
		}},
	}
}

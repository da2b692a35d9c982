package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dynahold/dynahold/localdb"
)

// asProgram makes a copy of this test binary be the program, so that it can be
// killed.
const asProgram = "INVENTORY_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	goleak.VerifyTestMain(m)
}

// result is what a run printed and how it ended.
type result struct {
	code     int
	out, err string
}

func runIt(ctx context.Context, stdin string, args ...string) result {
	var out, errs bytes.Buffer
	code := run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func (r result) want(t *testing.T, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s\n%s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("%q is missing from\n%s\n%s", text, r.out, r.err)
		}
	}
}

// row is a number of the summary.
func (r result) row(t *testing.T, name string) int {
	t.Helper()
	found := regexp.MustCompile(`(?m)^ *` + regexp.QuoteMeta(name) + ` +([0-9,]+)$`).FindStringSubmatch(r.out)
	if found == nil {
		t.Fatalf("no row %q in\n%s\n%s", name, r.out, r.err)
	}
	n, err := strconv.Atoi(strings.ReplaceAll(found[1], ",", ""))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func generated(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", append([]string{"run", "./generate"}, args...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func asFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "events.jsonl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// shared starts an engine that several runs of a test use, and returns a prefix
// of tables for this test alone.
func shared(t *testing.T) (*localdb.Engine, string) {
	t.Helper()
	engine, err := localdb.Start(t.Context(), localdb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = engine.Close() })
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", engine.Endpoint())
	return engine, fmt.Sprintf("inventory-test-%d-", time.Now().UnixNano())
}

func TestShippedInputIsTheGenerators(t *testing.T) {
	if generated(t) != string(builtIn) {
		t.Error("orders.jsonl differs from what ./generate makes: run go generate")
	}
}

func TestWholeRun(t *testing.T) {
	text := generated(t, "-seed", "7", "-orders", "60")
	r := runIt(t.Context(), "", "-input", asFile(t, text), "-workers", "24")
	r.want(t, exitOK, "Nothing oversold, nothing lost, nothing counted twice.")
	orders, states := strings.Count(text, `"kind":"order"`), strings.Count(text, `"kind":"status"`)
	if got := r.row(t, "orders"); got != orders {
		t.Errorf("%d orders, want %d", got, orders)
	}
	if got := r.row(t, "accepted") + r.row(t, "rejected for lack of stock"); got != 60 {
		t.Errorf("%d orders decided, want 60", got)
	}
	if got := r.row(t, "status events"); got != states {
		t.Errorf("%d status events, want %d", got, states)
	}
	if got := r.row(t, "applied") + r.row(t, "stale, dropped"); got > states || r.row(t, "stale, dropped") == 0 {
		t.Errorf("%d events applied or stale of %d", got, states)
	}
}

// With one worker everything is determined.
const small = `
{"kind":"stock","product":"tea","quantity":5}
{"kind":"stock","product":"tea","quantity":5}
{"kind":"order","order":"o1","customer":"ann","lines":[{"product":"tea","quantity":3,"price":250}],"time":"2025-03-14T08:00:00Z"}
{"kind":"status","order":"o1","event":"e2","status":"paid","time":"2025-03-14T08:05:00Z"}
{"kind":"status","order":"o1","event":"e1","status":"placed","time":"2025-03-14T08:00:00Z"}
{"kind":"order","order":"o2","customer":"bob","lines":[{"product":"tea","quantity":3,"price":250}],"time":"2025-03-14T08:01:00Z"}
{"kind":"order","order":"o1","customer":"ann","lines":[{"product":"tea","quantity":3,"price":250}],"time":"2025-03-14T08:00:00Z"}
{"kind":"order","order":"o3","customer":"ann","lines":[{"product":"tea","quantity":2,"price":250}],"time":"2025-03-14T07:00:00Z"}
{"kind":"status","order":"o1","event":"e2","status":"paid","time":"2025-03-14T08:05:00Z"}
{"kind":"status","order":"o1","event":"e3","status":"packed","time":"2025-03-14T08:05:00Z"}
{"kind":"order","order":"o3","customer":"ann","lines":[{"product":"tea","quantity":2,"price":250}],"time":"2025-03-14T07:00:00Z"}
{"kind":"stock","product":"cup","quantity":4}
{"kind":"stock","product":"pot","quantity":1}
{"kind":"order","order":"o4","customer":"cid","lines":[{"product":"cup","quantity":2,"price":500},{"product":"pot","quantity":1,"price":2000}],"time":"2025-03-14T08:02:00Z"}
{"kind":"order","order":"o5","customer":"bob","lines":[{"product":"cup","quantity":1,"price":500},{"product":"pot","quantity":1,"price":2000}],"time":"2025-03-14T08:03:00Z"}
{"kind":"order","order":"o4","customer":"cid","lines":[{"product":"cup","quantity":2,"price":500},{"product":"pot","quantity":1,"price":2000}],"time":"2025-03-14T08:02:00Z"}
`

func TestStandardInput(t *testing.T) {
	r := runIt(t.Context(), small, "-input", "-", "-workers", "1")
	r.want(t, exitOK, "each order decided exactly once, none lost (5)")
	for name, want := range map[string]int{
		"orders": 8, "of several products": 3, "accepted": 3, "rejected for lack of stock": 2, "malformed lines": 0,
		"status events": 4, "applied": 2, "stale, dropped": 1,
	} {
		if got := r.row(t, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
	if n := strings.Count(r.out, "duplicates"); n != 2 {
		t.Errorf("%d rows of duplicates, want 2\n%s", n, r.out)
	}
	quiet := runIt(t.Context(), small, "-input", "-", "-quiet")
	if quiet.want(t, exitOK); quiet.out+quiet.err != "" {
		t.Errorf("a quiet run printed %q %q", quiet.out, quiet.err)
	}
}

func TestMalformedLines(t *testing.T) {
	bad := []struct{ line, says string }{
		{`{"kind":"order"`, "unexpected end of JSON input"},
		{`[]`, "cannot unmarshal"},
		{`{"kind":"refund","order":"o1"}`, `kind is "refund"`},
		{`{"kind":"stock","product":"milk","quantity":-1}`, "quantity is -1"},
		{`{"kind":"stock","product":"tea","quantity":6}`, "stock tea came before with other contents"},
		{`{"kind":"order","order":"o9","customer":"ann","lines":[{"product":"tea","quantity":0,"price":1}],"time":"2025-03-14T08:00:00Z"}`, "quantity is 0"},
		{`{"kind":"order","order":"o9","customer":"ann","lines":[{"product":"gold","quantity":1,"price":1}],"time":"2025-03-14T08:00:00Z"}`, "no stock line came before"},
		{`{"kind":"order","order":"","customer":"ann","lines":[{"product":"tea","quantity":1,"price":1}]}`, "order has 0 bytes, want 1 to 256; time is missing"},
		{`{"kind":"order","order":"o9","customer":"ann","lines":[],"time":"2025-03-14T08:00:00Z"}`, "number of lines is 0"},
		{`{"kind":"order","order":"o9","customer":"ann","lines":[{"product":"tea","quantity":1},{"product":"tea","quantity":1}],"time":"2025-03-14T08:00:00Z"}`, `product "tea" is in two lines`},
		{`{"kind":"order","order":"o1","customer":"eve","lines":[{"product":"tea","quantity":3,"price":250}],"time":"2025-03-14T08:00:00Z"}`, "order o1 came before with other contents"},
		{`{"kind":"status","order":"o1","event":"e9","status":"paid","time":"yesterday"}`, "yesterday"},
		{`{"kind":"status","order":"o1","event":"e9","status":"paid","time":"2999-01-01T00:00:00Z"}`, "in the future"},
	}
	text := strings.TrimSpace(small) + "\n"
	first := strings.Count(text, "\n") + 1
	for _, b := range bad {
		text += b.line + "\n"
	}
	r := runIt(t.Context(), text+"\n", "-input", "-")
	r.want(t, exitFailed, "Nothing oversold", "13 malformed lines were skipped")
	for i, b := range bad {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)^line %d skipped: .*%s`, first+i, regexp.QuoteMeta(b.says)))
		if !line.MatchString(r.err) {
			t.Errorf("no line matches %v in\n%s", line, r.err)
		}
	}
	if got := r.row(t, "malformed lines"); got != len(bad) {
		t.Errorf("%d malformed lines, want %d", got, len(bad))
	}
	if many := runIt(t.Context(), strings.Repeat("?\n", 25), "-input", "-"); !strings.Contains(many.err, "... and 5 more\n") {
		t.Errorf("25 malformed lines are reported as\n%s", many.err)
	}
}

func TestUsage(t *testing.T) {
	runIt(t.Context(), "", "-h").want(t, exitOK, "Usage: inventory")
	for _, args := range [][]string{
		{"-workers", "0"}, {"-workers", "many"}, {"-lease", "1ms"}, {"-prefix", "a b"}, {"-nonsense"}, {"orders.jsonl"},
		{"-input", filepath.Join(t.TempDir(), "missing")}, {"-input", t.TempDir()},
	} {
		runIt(t.Context(), "", args...).want(t, exitUsage, "inventory: ")
	}
}

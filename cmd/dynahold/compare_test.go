package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dynahold/dynahold/internal/load"
	"github.com/dynahold/dynahold/localdb"
)

func TestFlagsReachTheHarness(t *testing.T) {
	f := &fake{}
	code, _, errs := call(t.Context(), f, strings.Fields(`compare --processes 2 --workers 3 --items 4 --zipf 1.5 --size 2.5KB --work 5ms
		--pause 6ms --latency 8ms --pareto --stall 2s --span 3s --rounds 2 --seed 7 --real --quiet`)...)
	if code != exitOK || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	want := load.Workload{
		Processes: 2, Workers: 3, Items: 4, Zipf: 1.5, Size: 2560, Work: 5 * time.Millisecond, Pause: 6 * time.Millisecond, Span: 3 * time.Second,
		Latency: load.Latency{Median: 8 * time.Millisecond, P99: 20 * time.Millisecond, Pareto: true, Stall: 2 * time.Second}, Seed: 7,
	}
	got := f.asked[0]
	if got.Budget == 0 {
		t.Error("a round has no end in sight")
	}
	got.Budget = 0
	if got != want || !f.real {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if n := 2 * measuredModes; len(f.asked) != n || f.asked[n-1].Seed != 8 {
		t.Errorf("%d runs, not %d; the last one of seed %d", len(f.asked), n, f.asked[n-1].Seed)
	}
}

// measuredModes are those that no flag and no rule leaves out: all but nolock.
var measuredModes = len(load.Modes()) - 1

func TestModesOutOfTheQuestionAreNotMeasured(t *testing.T) {
	for args, want := range map[string]int{
		"":                     measuredModes,
		"--real":               measuredModes,
		"--side-effects":       2,
		"--side-effects --all": len(load.Modes()),
		"--every-state":        5,
	} {
		f := &fake{}
		code, out, errs := call(t.Context(), f, append([]string{"compare", "-q", "--rounds", "1"}, strings.Fields(args)...)...)
		if code != exitOK || len(f.asked) != 2*want {
			t.Errorf("%q: code %d, %d modes, want %d; %s", args, code, len(f.asked), want, errs)
		}
		if said := strings.Contains(strings.Join(strings.Fields(out), " "), "not measured without --all"); said != (want < len(load.Modes())) {
			t.Errorf("%q: what was left out is told: %v", args, said)
		}
	}
}

func TestTableGoesOutAndProgressDoesNot(t *testing.T) {
	code, out, errs := call(t.Context(), &fake{}, "compare", "--rounds", "1")
	if code != exitOK || !strings.Contains(out, "Recommendation: optimistic\n") {
		t.Errorf("code %d\n%s", code, out)
	}
	if n := strings.Count(errs, "round 1 of 1: "); n != 2*measuredModes || strings.Count(errs, ": uneven: ") != measuredModes || strings.Contains(out, "round 1 of 1") {
		t.Errorf("%d lines of progress:\n%s", n, errs)
	}
	if strings.ContainsAny(out+errs, "\x1b\r") {
		t.Error("control characters")
	}
	if _, _, errs := call(t.Context(), &fake{}, "compare", "--rounds", "1", "-q"); errs != "" {
		t.Errorf("quiet, and yet: %s", errs)
	}
}

func TestJSONIsOneDocument(t *testing.T) {
	_, out, _ := call(t.Context(), &fake{}, "compare", "-o", "json", "--rounds", "1", "--price-write", "1.25")
	d := json.NewDecoder(strings.NewReader(out))
	var doc struct {
		Command        string
		Modes          []struct{ Mode string }
		Prices         map[string]any
		Recommendation struct{ Mode string }
		World          string
		Verdict        struct{ Mode string }
		Uneven         struct {
			World    string
			Modes    []struct{ Mode string }
			Workload struct {
				P99 float64 `json:"latency_p99_ms"`
			}
		}
	}
	if err := d.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if d.More() || len(doc.Modes) != measuredModes || doc.Recommendation.Mode == "" {
		t.Errorf("%s", out)
	}
	if u := doc.Uneven; doc.World != "even" || u.World != "uneven" || len(u.Modes) != measuredModes || u.Workload.P99 != 50 || doc.Verdict.Mode == "" {
		t.Errorf("%s", out)
	}
	if doc.Prices["write_usd_per_million_units"] != 1.25 || doc.Prices["source"] != "given on the command line" {
		t.Errorf("%v", doc.Prices)
	}

	// The command in it measures the same once more.
	even := func(w load.Workload) bool { return w.Latency.P99 == 10*time.Millisecond }
	uneven := func(w load.Workload) bool { return w.Latency.P99 == 50*time.Millisecond }
	f := &fake{}
	if code, _, errs := call(t.Context(), f, append(strings.Fields(doc.Command)[1:], "-q")...); code != exitOK || len(f.asked) != 2*measuredModes || slices.IndexFunc(f.asked, uneven) < 0 || slices.IndexFunc(f.asked, even) < 0 {
		t.Errorf("%s: code %d, %s", doc.Command, code, errs)
	}
}

func TestReportIsWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	code, _, errs := call(t.Context(), &fake{}, "compare", "--rounds", "1", "--html", path)
	page, err := os.ReadFile(path)
	if code != exitOK || err != nil || !strings.HasSuffix(string(page), "</html>\n") || !strings.Contains(errs, "report: "+path) {
		t.Errorf("code %d, %v, %s", code, err, errs)
	}
	if code, _, _ := call(t.Context(), &fake{err: errors.New("no engine")}, "compare", "--html", path); code != exitFailed {
		t.Errorf("code %d", code)
	}
	if again, err := os.ReadFile(path); err != nil || string(again) != string(page) {
		t.Errorf("a failed comparison has touched the old report: %v", err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

// What stands at the path is replaced only if it is a file; links stay links.
func TestReportReplacesFilesOnly(t *testing.T) {
	dir := t.TempDir()
	file, link, dangling, socket := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "dangling"), filepath.Join(dir, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	err = errors.Join(os.WriteFile(file, []byte("old"), 0o600), os.Symlink("file", link), os.Symlink("nothing", dangling), os.Symlink("socket", filepath.Join(dir, "to-socket")))
	if err != nil {
		t.Skip(err)
	}
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, says := range map[string]string{"socket": "no regular file", "to-socket": "no regular file", "dangling": "does not exist"} {
		f := &fake{}
		if code, _, errs := call(t.Context(), f, "compare", "--html", filepath.Join(dir, name)); code != exitUsage || !strings.Contains(errs, says) || len(f.asked) > 0 {
			t.Errorf("%s: code %d, %s", name, code, errs)
		}
	}
	if code, _, errs := call(t.Context(), &fake{}, "compare", "--rounds", "1", "--html", link); code != exitOK {
		t.Fatalf("code %d, %s", code, errs)
	}
	page, err := os.ReadFile(file)
	if err != nil || !strings.HasSuffix(string(page), "</html>\n") {
		t.Errorf("the file behind the link is not the report: %v", err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	after, err := os.ReadDir(dir)
	if err != nil || fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the folder has %v, had %v: %v", after, before, err)
	}
}

func TestExitCodes(t *testing.T) {
	for name, c := range map[string]struct {
		fake *fake
		code int
		says string
	}{
		"fine":      {&fake{}, exitOK, ""},
		"no engine": {&fake{err: errors.New("no engine")}, exitFailed, "dynahold: no engine"},
		"lost":      {&fake{change: func(r *load.Result) { r.Lost = 1 }}, exitFailed, "lost or made twice"},
		"doubled":   {&fake{change: func(r *load.Result) { r.Extra = 1 }}, exitFailed, "lost or made twice"},
		"failed":    {&fake{change: func(r *load.Result) { r.Failed = 1 }}, exitFailed, "calls failed in the recommended mode"},
		"lost by another": {&fake{change: func(r *load.Result) {
			if r.Contender == "pessimistic" {
				r.Lost = 1
			}
		}}, exitFailed, "lost or made twice"},
		"failed in another": {&fake{change: func(r *load.Result) {
			if r.Contender == "pessimistic" {
				r.Failed = 1
			}
		}}, exitOK, ""},
		"too little":          {&fake{change: func(r *load.Result) { r.Changes = 3 }}, exitFailed, "no mode can be recommended"},
		"no engine to be had": {&fake{err: fmt.Errorf("%w: %w; ways out: Amazon DynamoDB", localdb.ErrNoEngine, errors.New("npm is missing"))}, exitFailed, "to measure on: npm is missing. Install npm"},
	} {
		code, out, errs := call(t.Context(), c.fake, "compare", "-q", "--rounds", "1")
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: code %d, %q", name, code, errs)
		}
		if strings.Contains(errs, "Amazon") {
			t.Errorf("%s: what cannot be measured is proposed: %s", name, errs)
		}
		if c.fake.err == nil && !strings.Contains(out, "ecommendation") {
			t.Errorf("%s: no table", name)
		}
	}
}

func TestInterruptedBeforeItBegan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, errs := call(ctx, &fake{}, "compare", "-q"); code != exitFailed || out != "" || errs != "dynahold: interrupted\n" {
		t.Errorf("code %d, %q, %q", code, out, errs)
	}
}

func TestOnlyTheEmbeddedEngineIsMeasured(t *testing.T) {
	for _, c := range []struct {
		endpoint, ignore string
		code             int
	}{
		{"https://dynamodb.us-east-1.amazonaws.com", "", exitUsage},
		{"https://dynamodb.us-east-1.amazonaws.com", "true", exitOK},
		{"https://dynamodb.us-east-1.amazonaws.com", "True", exitOK},
		{"http://LOCALHOST:8000", "", exitOK},
		{"http://10.0.0.1:8000", "", exitUsage},
		{"http://127.0.0.1:8000", "", exitOK},
		{"http://[::1]:8000", "", exitOK},
		{"http://localhost:8000", "", exitOK},
		{":", "", exitUsage},
		{"", "", exitOK},
	} {
		t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", "")
		t.Setenv("AWS_ENDPOINT_URL", c.endpoint)
		t.Setenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", c.ignore)
		f := &fake{}
		code, out, errs := call(t.Context(), f, "compare", "-q")
		if code != c.code || (len(f.asked) > 0) != (code == exitOK) {
			t.Errorf("%+v: code %d, %s", c, code, errs)
		}
		if given := c.endpoint != "" && c.ignore == ""; code == exitOK && strings.Contains(out, "Measured on the server at "+c.endpoint) != given {
			t.Errorf("%+v: does not say what it was measured on", c)
		}
	}
}

// A pipe that is closed early is an error, not a table that nobody saw.
// The report is there all the same.
func TestOutputThatCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report.html")
	r, w := io.Pipe()
	_ = r.Close()
	var errs strings.Builder
	code := run(t.Context(), []string{"compare", "-q", "--rounds", "1", "--html", path}, &console{out: w, err: &errs, width: plainWidth}, &fake{})
	if code != exitFailed || !strings.Contains(errs.String(), "closed") {
		t.Errorf("code %d, %q", code, errs.String())
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestBarOnTerminals(t *testing.T) {
	var out, errs strings.Builder
	c := &console{out: &out, err: &errs, errIsTerminal: true, width: plainWidth}
	if code := run(t.Context(), []string{"compare", "--rounds", "1"}, c, &fake{}); code != exitOK {
		t.Errorf("code %d", code)
	}
	if !strings.Contains(errs.String(), "starting the embedded engine") || !strings.HasSuffix(errs.String(), "\r") || strings.Contains(errs.String(), "\n") {
		t.Errorf("a bar is one line, and gone at the end: %q", errs.String())
	}
	if strings.Contains(out.String(), "\r") {
		t.Error("the bar is in the output")
	}
}

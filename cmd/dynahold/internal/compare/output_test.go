package compare

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has changed; if that is meant: go test ./internal/compare -update\n%s", path, got)
	}
}

func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := findings(hot, of(measured()...)).JSON(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", b.Bytes())
}

// Who parses the document finds all of a mode that did nothing, and what was not
// measured.
func TestJSONOfWhatIsNotThere(t *testing.T) {
	s := hot
	s.Endpoint = "http://127.0.0.1:8000"
	m := of(mode("pessimistic"), mode("optimistic", tail(0), func(m *Mode) { m.Changes = 0 }))
	m.Skipped = []Skipped{{"nolock", "made for events"}}
	var b bytes.Buffer
	if err := findings(s, m).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Schema  int
		Version string           `json:"tool_version"`
		Engine  map[string]any   `json:"engine"`
		Skipped []map[string]any `json:"modes_not_measured"`
		Modes   []map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Schema != 1 || d.Version != "v1.2.3" || d.Engine["endpoint"] != s.Endpoint || d.Engine["kind"] != "given" || d.Skipped[0]["because"] != "made for events" {
		t.Errorf("%s", &b)
	}
	for _, name := range []string{"p50_ms", "p99_ms", "requests_per_change", "cost_usd_per_million_changes", "fairness_jain"} {
		if v, is := d.Modes[1][name]; !is || v != nil || d.Modes[0][name] == nil {
			t.Errorf("%s: %v, and %v of a mode that did nothing", name, d.Modes[0][name], v)
		}
	}
}

// The help of the command describes the whole document.
func TestJSONIsDocumented(t *testing.T) {
	data, err := os.ReadFile("testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`"([a-z_0-9]+)":`).FindAllSubmatch(data, -1) {
		if !regexp.MustCompile(`\b` + string(name[1]) + `\b`).MatchString(Fields) {
			t.Errorf("%s is not described", name[1])
		}
	}
}

// Nothing that is left, and a limit of infinity, are not beyond JSON.
func TestJSONWithoutChoice(t *testing.T) {
	var b bytes.Buffer
	if err := findings(hot, of(mode("optimistic", loses(1)))).JSON(&b); err != nil {
		t.Fatal(err)
	}
	var d struct {
		Modes          []map[string]any
		Recommendation map[string]any
	}
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Recommendation["mode"] != nil || d.Modes[0]["rank"] != nil || d.Modes[0]["excluded_because"] != "lost 1 change" {
		t.Errorf("%s", &b)
	}
	if list, is := d.Recommendation["runner_up_when"].([]any); !is || len(list) != 0 {
		t.Errorf("a list without entries is no list: %s", &b)
	}
}

func TestTableForAPipe(t *testing.T) {
	var b bytes.Buffer
	if err := NewReport(hot, of(measured()...)).Table(&b, 100, false); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(b.String(), "\x1b\r") {
		t.Error("control characters")
	}
	for i, line := range strings.Split(b.String(), "\n") {
		if strings.TrimRight(line, " ") != line {
			t.Errorf("line %d ends in blanks: %q", i+1, line)
		}
	}
	golden(t, "table.txt", b.Bytes())
}

func TestTableForTerminals(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	escapes := regexp.MustCompile("\x1b\\[[0-9;]*m")
	for _, limited := range []bool{false, true} {
		modes := measured()
		if limited {
			modes[0].PartitionMax = 100
		}
		for _, width := range []int{50, 60, 80, 100, 120} {
			var b bytes.Buffer
			if err := NewReport(hot, of(modes...)).Table(&b, width, true); err != nil {
				t.Fatal(err)
			}
			text := escapes.ReplaceAllString(b.String(), "")
			for line := range strings.Lines(text) {
				line = strings.TrimRight(line, "\n")
				if n := utf8.RuneCountInString(line); n > width && !strings.HasPrefix(line, "    ") {
					t.Errorf("a line of %d in %d columns: %q", n, width, line)
				}
			}
			if got := strings.Contains(text, "read $"); !got {
				t.Error("no prices")
			}
			if got, want := strings.Contains(text, "wider terminal"), width < 100; got != want {
				t.Errorf("%d columns: cut %v", width, got)
			}
			if got := strings.Contains(text, "Limit: "); got != limited {
				t.Errorf("limit shown: %v, want %v", got, limited)
			}
		}
	}
}

func TestPage(t *testing.T) {
	modes := measured()
	modes[2].PartitionMax = 100 // one more column
	for name, r := range map[string]Report{
		"choice":    NewReport(hot, of(modes...)),
		"no choice": NewReport(hot, of(mode("optimistic", loses(1)))),
		"markup":    NewReport(hot, of(mode(`optimistic, <b> & "x"`, loses(1)))),
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := (Findings{Worlds: []Report{r}}).HTML(&b); err != nil {
				t.Fatal(err)
			}
			page := b.String()
			wellFormed(t, page)
			standsAlone(t, page)
			for _, want := range []string{"prefers-color-scheme: dark", "<table>", `<th scope="row">`, r.Settings.Command(), "var(--ink)"} {
				if !strings.Contains(page, want) {
					t.Errorf("%q is missing", want)
				}
			}
			if n := strings.Count(page, "<svg"); n != len(charts) {
				t.Errorf("%d charts", n)
			}
			if n := strings.Count(page, `text-anchor="end"`); n != len(charts)*len(r.Modes) {
				t.Errorf("%d names end where their bars begin, of %d", n, len(charts)*len(r.Modes))
			}
			if left := regexp.MustCompile(`(fill|stroke):#[0-9A-Fa-f]+`).FindString(page); left != "" {
				t.Errorf("%q would not be seen in dark or in light", left)
			}
			for _, why := range r.Advice.Out {
				if !strings.Contains(page, "<small>"+why+"</small>") {
					t.Errorf("nobody reads why: %s", why)
				}
			}
			if r.Advice.Choice != "" && (!strings.Contains(page, r.Advice.Code) || !strings.Contains(page, "Runner-up: "+r.Advice.RunnerUp)) {
				t.Error("the recommendation is not in it")
			}
		})
	}
}

// wellFormed: the page is XML too, so every parser sees the same.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	depth := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token.(type) {
		case xml.StartElement:
			depth++
		case xml.EndElement:
			depth--
		}
	}
	if depth != 0 {
		t.Errorf("%d elements are open", depth)
	}
}

// standsAlone: no script, and nothing that a browser would fetch.
func standsAlone(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(page))
	for {
		token, err := d.Token()
		if err != nil {
			break
		}
		element, is := token.(xml.StartElement)
		if !is {
			continue
		}
		switch element.Name.Local {
		case "script", "link", "img", "iframe", "object", "embed", "image", "use":
			t.Errorf("element %s", element.Name.Local)
		}
		for _, a := range element.Attr {
			if a.Name.Space == "xmlns" || a.Name.Local == "xmlns" {
				continue // a name, not an address
			}
			if strings.Contains(a.Value, "//") || strings.Contains(a.Value, "url(") {
				t.Errorf("attribute %s: %s", a.Name.Local, a.Value)
			}
		}
	}
	if strings.Contains(page, "@import") || strings.Contains(page, "url(") {
		t.Error("the style loads something")
	}
}

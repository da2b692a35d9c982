package wire_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

// The table of requests in docs/sequences.md says what the golden file of the wire says:
// which operation each is, which of the library's attributes it writes, and no others in
// its condition than there are. The pictures show these requests, and all of them.
func TestSequencesAreThoseOnTheWire(t *testing.T) {
	document := string(rig.Must(os.ReadFile("../../../docs/sequences.md"))(t))
	wire := string(rig.Must(os.ReadFile("testdata/wire.golden"))(t))
	rows := regexp.MustCompile("(?m)^\\| (.+?) \\| `(.+?)` \\| (.*?) ?\\| (.*?) ?\\| `(.+?)`(?: (\\[\\d+\\])|, `\\w+`) \\|$").FindAllStringSubmatch(document, -1)
	var names []string
	for _, row := range rows {
		names = append(names, row[1])
		if row[6] != "" {
			compareWithWire(t, wire, row[1], row[2], row[3], row[4], row[5], row[6])
		}
	}
	var shown []string
	for _, message := range regexp.MustCompile(`(?m)^    \w+->>D: (.*)$`).FindAllStringSubmatch(document, -1) {
		shown = append(shown, message[1])
		if !slices.Contains(names, message[1]) {
			t.Errorf("a picture has the message %q, which is not in the table", message[1])
		}
	}
	for _, name := range names {
		if !slices.Contains(shown, name) {
			t.Errorf("no picture has the request %q", name)
		}
	}
	if pictures := strings.Count(document, "```mermaid\n"); pictures != 5 || len(rows) != 9 {
		t.Errorf("%d pictures, %d requests: the test looks at the wrong place", pictures, len(rows))
	}
}

// compareWithWire compares a row with a request of a block of the golden file.
func compareWithWire(t *testing.T, wire, name, operation, writes, demands, block, number string) {
	t.Helper()
	attributes := regexp.MustCompile(`\b(lock(edBy|Time|Lease|Token|Held|Stolen|Stub|Queue)|tombstone|version|writers)\b`)
	named := func(text string) []string {
		all := attributes.FindAllString(text, -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	_, rest, found := strings.Cut(wire, "=== "+block+"\n")
	rest, _, _ = strings.Cut(rest, "\n=== ")
	_, rest, numbered := strings.Cut("\n"+rest, "\n"+number+" "+operation+"\n")
	request, _, _ := strings.Cut(rest, "\n[") // up to the next request
	request, _, _ = strings.Cut(request, "\n--- ")
	if !found || !numbered {
		t.Errorf("%s: %s has no %s %s", name, block, number, operation)
		return
	}
	var written, demanded strings.Builder
	for line := range strings.Lines(request) {
		if _, expression, ok := strings.Cut(line, "UpdateExpression: "); ok {
			written.WriteString(expression)
		}
		if _, expression, ok := strings.Cut(line, "ConditionExpression: "); ok {
			demanded.WriteString(expression)
		}
	}
	if got, want := named(writes), named(written.String()); !slices.Equal(got, want) {
		t.Errorf("%s writes %v, on the wire %v", name, got, want)
	}
	for _, attribute := range named(demands) {
		if !slices.Contains(named(demanded.String()), attribute) {
			t.Errorf("%s demands %s, which is not on the wire", name, attribute)
		}
	}
}

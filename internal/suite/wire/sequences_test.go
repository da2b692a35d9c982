package wire_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dynahold/dynahold/internal/rig"
)

// The pictures of docs/sequences.md show what the golden file of the wire says:
// which operation each message is, which of the library's attributes it writes,
// and no others in its condition than there are.
func TestSequencesAreThoseOnTheWire(t *testing.T) {
	const document, golden = "../../../docs/sequences.md", "testdata/wire.golden"
	attributes := regexp.MustCompile(`\b(lock(edBy|Time|Lease|Token|Held|Stolen|Stub)|tombstone|version|writers)\b`)
	named := func(text string) []string {
		all := attributes.FindAllString(text, -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	message := regexp.MustCompile(`(?m)^    \w+->>D: (\w+)(.*)$`)
	source := regexp.MustCompile("(?m)^\\d+\\. (?:`(.+)` (\\[\\d+\\])|not in the golden file: .*)$")
	wire, sections := string(rig.Must(os.ReadFile(golden))(t)), strings.Split(string(rig.Must(os.ReadFile(document))(t)), "\n## ")[1:]
	rig.Equal(t, len(sections), 5, "%s has pictures", document)
	for _, section := range sections {
		title, _, _ := strings.Cut(section, "\n")
		messages, sources := message.FindAllStringSubmatch(section, -1), source.FindAllStringSubmatch(section, -1)
		if len(messages) == 0 || len(messages) != len(sources) {
			t.Errorf("%s: %d messages, and the sources of %d", title, len(messages), len(sources))
			continue
		}
		for i, m := range messages {
			operation, text := m[1], m[2]
			block, number := sources[i][1], sources[i][2]
			if block == "" {
				continue
			}
			_, rest, found := strings.Cut(wire, "=== "+block+"\n")
			rest, _, _ = strings.Cut(rest, "\n=== ")
			_, rest, numbered := strings.Cut("\n"+rest, "\n"+number+" "+operation+"\n")
			request, _, _ := strings.Cut(rest, "\n[") // up to the next request
			request, _, _ = strings.Cut(request, "\n--- ")
			if !found || !numbered {
				t.Errorf("%s, message %d: %s has no %s %s", title, i+1, block, number, operation)
				continue
			}
			writes, demands, _ := strings.Cut(text, " IF ")
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
				t.Errorf("%s, message %d writes %v, on the wire %v", title, i+1, got, want)
			}
			for _, name := range named(demands) {
				if !slices.Contains(named(demanded.String()), name) {
					t.Errorf("%s, message %d demands %s, which is not on the wire", title, i+1, name)
				}
			}
		}
	}
}

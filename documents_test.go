package dynahold_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// docs/testing.md shows the program that .ci/stranger runs, and its test.
func TestTheDocumentOnTestingShowsWhatIsRun(t *testing.T) {
	document := read(t, "docs/testing.md")
	_, code, _ := strings.Cut(read(t, ".ci/testdata/stranger/main.go"), "\ntype account")
	code, _, _ = strings.Cut("type account"+code, "\nfunc main()")
	_, test, _ := strings.Cut(read(t, ".ci/testdata/stranger/main_test.go"), "\nfunc TestDeposit")
	for _, part := range []string{strings.TrimSpace(code), strings.TrimSpace("func TestDeposit" + test)} {
		if !strings.Contains(document, "```go\n"+part+"\n```\n") {
			t.Errorf("docs/testing.md does not show what is run:\n%s", part)
		}
	}
}

// Links from one document to another, and to files, lead somewhere; so do those to
// a heading.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	link, program := regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile("(?s)\n```.*?\n```")
	links := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(program.ReplaceAllString(read(t, name), ""), -1) {
			if strings.Contains(found[1], "://") {
				continue
			}
			links++
			file, heading, deep := strings.Cut(found[1], "#")
			target := name
			if file != "" {
				target = path.Join(path.Dir(name), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", name, found[1], err)
			} else if deep && !slices.Contains(headings(read(t, target)), heading) {
				t.Errorf("%s links to %s: there is no such heading", name, found[1])
			}
		}
		return nil
	})
	if err != nil || links == 0 {
		t.Errorf("%d links, %v", links, err)
	}
}

// headings are the names under which GitHub finds the headings of a document.
func headings(document string) (names []string) {
	dropped := regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
	for _, line := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(document, -1) {
		names = append(names, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(line[1]), ""), " ", "-"))
	}
	return names
}

// The pictures of docs/sequences.md show what the golden file of the wire says:
// which operation each message is, which of the library's attributes it writes,
// and no others in its condition than there are.
func TestSequencesAreThoseOnTheWire(t *testing.T) {
	const document, golden = "docs/sequences.md", "internal/suite/wire/testdata/wire.golden"
	attributes := regexp.MustCompile(`\b(lock(edBy|Time|Lease|Token|Held|Stolen|Stub)|tombstone|version|writers)\b`)
	named := func(text string) []string {
		all := attributes.FindAllString(text, -1)
		slices.Sort(all)
		return slices.Compact(all)
	}
	message := regexp.MustCompile(`(?m)^    \w+->>D: (\w+)(.*)$`)
	source := regexp.MustCompile("(?m)^\\d+\\. (?:`(.+)` (\\[\\d+\\])|not in the golden file: .*)$")
	wire, sections := read(t, golden), strings.Split(read(t, document), "\n## ")[1:]
	if len(sections) != 5 {
		t.Errorf("%s has %d pictures", document, len(sections))
	}
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

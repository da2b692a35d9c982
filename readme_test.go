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

// TestReadmeShowsTheQuickstart keeps the README's first program the one that
// is compiled and run.
func TestReadmeShowsTheQuickstart(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "examples/quickstart/main.go"), "\n") // without the package comment
	if !strings.Contains(read(t, "README.md"), "```go\n"+code+"```") {
		t.Error("the README's first program differs from examples/quickstart/main.go")
	}
}

// The first screen of the README has a program, figures with their command, and the two
// commands with which everybody begins: they come before any other.
func TestTheFirstScreenOfTheReadme(t *testing.T) {
	lines := strings.SplitAfterN(read(t, "README.md"), "\n", 41)
	screen, all := strings.Join(lines[:40], ""), strings.Join(lines, "")
	for _, part := range []string{"```go\n", "<!-- table from=", "<!-- end of table -->", "cd bench && go run .", "```sh\ngo run ./examples/inventory\ngo test ./...\n```\n"} {
		if !strings.Contains(screen, part) {
			t.Errorf("the first 40 lines of README.md do not have %q", part)
		}
	}
	if _, after, _ := strings.Cut(all, "```sh\n"); !strings.HasPrefix(after, "go run ./examples/inventory\n") {
		t.Error("another command comes first in README.md")
	}
}

// The other programs in documents are those of internal/suite/documents, which are
// compiled.
func TestDocumentsShowWhatIsCompiled(t *testing.T) {
	compiled := read(t, "internal/suite/documents/snippets_test.go")
	for name, documents := range map[string][]string{
		"readmeUpdate": {"README.md"}, "readmeTransaction": {"README.md"}, "readmeApply": {"README.md"}, "readmeOnce": {"README.md"},
		"packageMutex": {"mutex/doc.go"}, "packageTicket": {"ticket/doc.go"}, "packageSemaphore": {"semaphore/doc.go"}, "packageJobs": {"jobs/doc.go"},
		"packagePessimistic": {"pessimistic/doc.go"}, "packageOptimistic": {"optimistic/doc.go"}, "packageNolock": {"nolock/doc.go"},
		"packageLockedread": {"lockedread/doc.go"},
		"packageTxn":        {"txn/doc.go"}, "packageTxnRequire": {"txn/doc.go"}, "packageOnce": {"once/doc.go"}, "packageRepo": {"repo/doc.go"},
	} {
		_, body, ok := strings.Cut(compiled, "func "+name+"(")
		_, body, shown := strings.Cut(body, "\t// shown\n")
		body, _, ended := strings.Cut(body, "\n\treturn err\n}\n")
		if !ok || !shown || !ended {
			t.Fatalf("%s is not in internal/suite/documents, or has another form", name)
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

// docs/recipes.md shows the programs of examples/recipes, which are tested.
func TestRecipesAreWhatIsTested(t *testing.T) {
	document, shown := read(t, "docs/recipes.md"), 0
	for _, name := range []string{"hold.go", "people.go", "elsewhere.go"} {
		code := read(t, "examples/recipes/"+name)
		for _, function := range regexp.MustCompile(`(?ms)^func .*?^}\n`).FindAllString(code, -1) {
			if shown++; !strings.Contains(document, function) {
				t.Errorf("docs/recipes.md does not show what is tested:\n%s", function)
			}
			if lines := strings.Count(function, "\n"); lines > 60 {
				t.Errorf("a recipe of %d lines is none", lines)
			}
		}
	}
	if recipes := strings.Count(document, "\n## "); recipes < 10 || shown < recipes {
		t.Errorf("%d recipes, %d functions", recipes, shown)
	}
}

// docs/testing.md shows the program that .ci/stranger runs, and its tests.
func TestTheDocumentOnTestingShowsWhatIsRun(t *testing.T) {
	document := read(t, "docs/testing.md")
	_, code, _ := strings.Cut(read(t, ".ci/testdata/stranger/main.go"), "\ntype account")
	code, _, _ = strings.Cut("type account"+code, "\nfunc main()")
	parts := []string{strings.TrimSpace(code)}
	_, tests, _ := strings.Cut(read(t, ".ci/testdata/stranger/main_test.go"), "\n)\n") // behind the imports
	for part := range strings.SplitSeq(tests, "\n}\n") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part+"\n}")
		}
	}
	if len(parts) != 6 {
		t.Errorf("%d parts are run, want 6: the test looks at the wrong place", len(parts))
	}
	for _, part := range parts {
		if !strings.Contains(document, "```go\n"+part+"\n```\n") {
			t.Errorf("docs/testing.md does not show what is run:\n%s", part)
		}
	}
}

// docs/tables.md shows the types of an example, which runs.
func TestTablesShowsWhatIsRun(t *testing.T) {
	_, code, _ := strings.Cut(read(t, "optimistic/example_roles_test.go"), "// shown\n")
	code, _, ended := strings.Cut(code, "// end of what is shown\n")
	if !ended || !strings.Contains(read(t, "docs/tables.md"), "```go\n"+strings.TrimSpace(code)+"\n```\n") {
		t.Error("docs/tables.md does not show what optimistic/example_roles_test.go runs")
	}
}

// Links from one document to another, and to files, lead somewhere; so do those to
// a heading.
func TestLinksOfDocumentsLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
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

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Documents have a budget of words, so that they are read. Later work may raise one, by
// a commit that says why.
func TestDocumentsKeepToTheirBudget(t *testing.T) {
	budgets := map[string]int{
		"README.md": 1000, "CHANGELOG.md": 580, "CONTRIBUTING.md": 920, "AGENTS.md": 380, "SECURITY.md": 660, "bench/README.md": 1160,
		"cmd/dynahold/README.md": 1420, "docs/README.md": 200, "docs/choosing.md": 1180, "docs/comparison.md": 580, "docs/errors.md": 710,
		"docs/faq.md": 690, "docs/limits.md": 1150, "docs/migration.md": 1240, "docs/night.md": 1000, "docs/operations.md": 985,
		"docs/figures.md": 230, "docs/performance.md": 2540, "docs/protocol.md": 4000, "docs/reliability.md": 945, "docs/sequences.md": 820, "docs/settings.md": 1340,
		"docs/recipes.md": 1024, "docs/stability.md": 272, "docs/tables.md": 730, "docs/telemetry.md": 1402, "docs/testing.md": 940,
	}
	total := 0
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) != ".md" || strings.Contains(name, "testdata") || strings.Contains(name, "node_modules") {
			return err
		}
		words := len(strings.Fields(read(t, name)))
		total += words
		if most := budgets[name]; words > most {
			t.Errorf("%s has %d words, its budget is %d", name, words, most)
		}
		return nil
	})
	if most := 28_000; err != nil || total == 0 || total > most {
		t.Errorf("all documents together have %d words, their budget is %d: %v", total, most, err)
	}
}

// What stops an attacker is shown by tests that are there.
func TestThreatsNameTestsThatExist(t *testing.T) {
	var all strings.Builder
	for name, file := range goFiles(t) {
		if strings.HasSuffix(name, "_test.go") {
			all.Write(file.Data)
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z]+)`").FindAllStringSubmatch(read(t, "SECURITY.md"), -1)
	if len(named) < 10 {
		t.Errorf("SECURITY.md names %d tests", len(named))
	}
	for _, name := range named {
		if !strings.Contains(all.String(), "func "+name[1]+"(") {
			t.Errorf("SECURITY.md names %s, which is not there", name[1])
		}
	}
}

// A package's document is read on one screen and a half.
func TestPackageDocumentsAreShort(t *testing.T) {
	for _, name := range []string{"repo", "nolock", "optimistic", "pessimistic", "lockedread", "delegate", "txn", "mutex", "ticket", "once", "semaphore", "jobs", "unique", "localdb", "repotest", "direct", "history"} {
		if lines := strings.Count(read(t, name+"/doc.go"), "\n"); lines > 60 {
			t.Errorf("%s/doc.go has %d lines, 60 are enough", name, lines)
		}
	}
}

// A sentence of README and docs has at most 30 words; tables and programs have none.
func TestSentencesAreShort(t *testing.T) {
	for _, name := range append(markdown(t, "docs"), "README.md") {
		for _, sentence := range longSentences(read(t, name)) {
			t.Errorf("%s: more than 30 words: %.120s", name, sentence)
		}
	}
	long := strings.Repeat("word ", 31)
	for text, want := range map[string]int{
		"Short.\n\n" + long + ".\n":                               1,
		"- " + long + "\n- " + long:                               2,
		long[:len(long)/2] + ". " + long[len(long)/2:] + ".":      0,
		"| " + long + " |\n# " + long + "\n":                      0,
		"Before.\n```go\n" + long + "\n```\n<!-- " + long + "-->": 0,
	} {
		if got := longSentences(text); len(got) != want {
			t.Errorf("%q has %d long sentences, want %d", text, len(got), want)
		}
	}
}

var (
	program     = regexp.MustCompile("(?s)\n```.*?\n```")
	remark      = regexp.MustCompile(`(?s)<!--.*?-->`)
	sentenceEnd = regexp.MustCompile(`[.!?:;]["')*]*(\s|$)|\n\s*\n|\n\s*[-*] |\n\s*\d+\. |\n#+ `)
)

// longSentences are the sentences of a document's prose with more than 30 words.
func longSentences(document string) (long []string) {
	var prose strings.Builder
	for line := range strings.Lines(remark.ReplaceAllString(program.ReplaceAllString(document, "\n"), "")) {
		if !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") {
			prose.WriteString(line)
		} else {
			prose.WriteString("\n")
		}
	}
	for _, sentence := range sentenceEnd.Split("\n"+prose.String(), -1) {
		if words := strings.Fields(sentence); len(words) > 30 {
			long = append(long, strings.Join(words, " "))
		}
	}
	return long
}

// markdown are the documents of a folder.
func markdown(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if path.Ext(entry.Name()) == ".md" {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names
}

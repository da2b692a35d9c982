package documents_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// private are words with which the library once named things of its own. Who reads a
// document for the first time knows none of them: the field has a word, or the sentence
// says what is meant.
var private = regexp.MustCompile(`(?i)\b(bells?|heirs?|stations?|yields?|surveys?|crowds?|rung|rings?|ghosts?|witness(es)?|grace|` +
	`by methods|taken by hand|in line|(the|its|their) line|rebirth|in doubt|in vain|down the line|out of sight|` +
	`(last|first|each|every|no|two|a dozen|fewer) looks?)\b`)

// Documents and package documents say what is meant without words of our own.
func TestDocumentsHaveNoPrivateWords(t *testing.T) {
	const root = "../../.."
	documents := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		if entry.IsDir() {
			if base := entry.Name(); base == "testdata" || base == "node_modules" || base == ".git" || base == "internal" {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".md" && entry.Name() != "doc.go" || name == filepath.Join("semaphore", "doc.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents++
		for _, found := range privateWords(string(text)) {
			t.Errorf("%s: %s", name, found)
		}
		return nil
	})
	if err != nil || documents < 30 {
		t.Errorf("%d documents were read: %v", documents, err)
	}
}

// privateWords are the places of a text with such words, each with what stands around.
func privateWords(text string) (places []string) {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n//", "\n")), " ")
	text = strings.ReplaceAll(text, "When in doubt take", "")
	if strings.Contains(text, "look is one read") { // it says what it means
		text = strings.ReplaceAll(text, "look", "read")
	}
	for _, at := range private.FindAllStringIndex(text, -1) {
		places = append(places, text[max(0, at[0]-30):min(len(text), at[1]+30)])
	}
	return places
}

func TestPrivateWordsAreFound(t *testing.T) {
	for text, want := range map[string]int{
		"The bell is rung.":                        2,
		"// stand in\n// line":                     1,
		"a dozen looks":                            1,
		"When in doubt take pessimistic.":          0,
		"It rewrites a string of a stationary row": 0,
	} {
		if got := privateWords(text); len(got) != want {
			t.Errorf("%q: %q, want %d", text, got, want)
		}
	}
}

package shown

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
)

// Whatever a name has in it, a document has nothing that a terminal obeys, or that turns
// text, and decodes to the same name.
func TestDocumentsHaveNothingThatCannotBeSeen(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0x20 && r < 0x7f || unicode.Is(unicode.Cs, r) || r > 0x3000 && r < 0xF000 || r > 0x20000 && r < 0xE0000 || r > 0xE0200 && r < 0x10FFF0 {
			continue
		}
		checkJSON(t, "a"+string(r)+"b")
	}
	checkJSON(t, `it's "x" \u202e <&> Käse ▸ 😀`)
}

func checkJSON(t *testing.T, name string) {
	t.Helper()
	for _, indent := range []string{"", "  "} {
		var out bytes.Buffer
		if err := JSON(&out, map[string]any{name: []string{name}, "raw": json.RawMessage(`"` + strings.Map(plain, name) + `"`)}, indent); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Fatalf("%+q has %q as it is", name, text[i:])
		}
		var back map[string]any
		if err := json.Unmarshal(out.Bytes(), &back); err != nil {
			t.Fatalf("%+q: %v", name, err)
		}
		list, is := back[name].([]any)
		if !is || list[0] != name || back["raw"] != strings.Map(plain, name) {
			t.Fatalf("%+q becomes %+q", name, back)
		}
	}
}

// plain leaves away what a text in JSON must not have as it is.
func plain(r rune) rune {
	if r < ' ' || r == '"' || r == '\\' {
		return -1
	}
	return r
}

func TestWhatIsSeenStaysAsItIs(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, "a <b> & Käse ▸ 😀 \xff \u202e\U000E0001", ""); err != nil {
		t.Fatal(err)
	}
	if want := `"a <b> & Käse ▸ 😀 \ufffd \u202e\udb40\udc01"` + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

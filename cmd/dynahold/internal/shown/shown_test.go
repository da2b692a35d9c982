package shown

import "testing"

func TestTexts(t *testing.T) {
	for text, want := range map[string][2]string{
		"till-1":              {"till-1", "till-1"},
		"":                    {"", ""},
		"Käse ▸":              {"Käse ▸", "Käse ▸"},
		"a\x1b[2J":            {`"a\x1b[2J"`, `a\x1b[2J`},
		"a\u009b2J":           {`"a\u009b2J"`, `a\u009b2J`},
		"two\nlines":          {`"two\nlines"`, "two\nlines"},
		"turned \u202e round": {`"turned \u202e round"`, `turned \u202e round`},
		"\xff":                {`"\xff"`, "\uFFFD"},
		`it's "x"`:            {`it's "x"`, `it's "x"`},
	} {
		if got := [2]string{Text(text), Lines(text)}; got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

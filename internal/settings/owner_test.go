package settings

import (
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dynahold/dynahold/repo"
)

// A name that is not UTF-8 came back changed: the process did not know its own
// holds.
func TestOwner(t *testing.T) {
	for name, want := range map[string]error{
		"host/1":                       nil,
		"Ünïcode #7":                   nil,
		strings.Repeat("x", 256):       nil,
		strings.Repeat("x", 257):       repo.ErrConfig,
		"\xff":                         repo.ErrConfig,
		"half a rune \xc3":             repo.ErrConfig,
		"a\nline":                      repo.ErrConfig,
		"\x00":                         repo.ErrConfig,
		"\u0085 next line, as control": repo.ErrConfig,
	} {
		got := name
		if err := Owner(&got)(); !errors.Is(err, want) || err == nil && got != name {
			t.Errorf("%q: %q, %v, want %v", name, got, err, want)
		}
	}
	var got string
	if err := Owner(&got)(); err != nil || !strings.Contains(got, "/") {
		t.Errorf("default %q, %v", got, err)
	}
	for host, want := range map[string]string{
		"host": "host/12", "": "/12", "h\xffst": "h?st/12", "a\tb\n": "a?b?/12",
		strings.Repeat("ä", 200): strings.Repeat("ä", 126) + "/12",
	} {
		got := ownName(host, 12)
		if got != want || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) || len(got) > maxOwner {
			t.Errorf("of %q: %q, want %q", host, got, want)
		}
	}
}

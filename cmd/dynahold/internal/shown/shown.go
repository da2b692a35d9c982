// Package shown makes texts that others have written into tables fit to be shown: a
// control character would be a command to a terminal or to some other program, and turned
// text would be read as another.
package shown

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text of one line: quoted, if not all of it can be seen.
func Text(s string) string {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Lines are sentences, such as those of an error, that may have such a text among them:
// what cannot be seen stands there as Go writes it.
func Lines(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\n' || unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

// Holder is who holds something, in a line of text. A lock that was handed over to one
// who waited does not name it.
func Holder(owner string, handed bool) string {
	switch {
	case handed:
		return "one from the queue, to whom it was handed over"
	case owner == "":
		return "nobody by name"
	}
	return owner
}

package shown

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

// JSON writes a document and a line's end. What cannot be seen is escaped, which readers
// decode to the same text: a document has it in texts and names alone.
func JSON(w io.Writer, document any, indent string) error {
	var plain, escaped bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(document); err != nil {
		return err
	}
	for _, r := range plain.String() {
		if r == '\n' || unicode.IsPrint(r) {
			escaped.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&escaped, `\u%04x`, unit)
		}
	}
	_, err := w.Write(escaped.Bytes())
	return err
}

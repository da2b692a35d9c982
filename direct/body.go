package direct

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/aws/smithy-go"
)

// bodyOf is the body of a request, as the SDK writes it: its inputs describe themselves
// to a serializer, and this is one. The SDK's own makes a new buffer and a second
// request for each. nil: there is something in it that only the SDK can write.
func bodyOf(in smithy.Serializable) (body []byte) {
	w := writers.Get().(*writer)
	w.text, w.open = w.text[:0], w.open[:0]
	defer func() {
		// A method that is not below, as for types of attributes to come.
		if recover() != nil {
			body = nil
		}
	}()
	in.Serialize(w)
	body = bytes.Clone(w.text)
	if cap(w.text) <= ordinary {
		writers.Put(w)
	}
	return body
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// ordinary is the size of a body, in bytes, up to which its buffer is kept for others.
const ordinary = 64 << 10

// writer writes JSON, of the types that items and requests on one item have. The
// embedded serializer is nil, so that others panic.
type writer struct {
	smithy.ShapeSerializer
	text []byte
	open []byte // brackets that are open
}

// begin writes what stands before a value: a comma, and its name if it is a member of
// an object, unless that has just been written.
func (w *writer) begin(schema *smithy.Schema) {
	if len(w.open) == 0 || w.text[len(w.text)-1] == ':' {
		return
	}
	w.separate()
	if w.open[len(w.open)-1] == '{' {
		w.name(schema)
	}
}

// separate writes a comma, but before the first.
func (w *writer) separate() {
	if last := w.text[len(w.text)-1]; last != '{' && last != '[' {
		w.text = append(w.text, ',')
	}
}

func (w *writer) name(schema *smithy.Schema) {
	w.text = append(append(append(w.text, '"'), schema.MemberName()...), `":`...)
}

func (w *writer) enter(schema *smithy.Schema, bracket byte) {
	w.begin(schema)
	w.text, w.open = append(w.text, bracket), append(w.open, bracket)
}

func (w *writer) leave(bracket byte) {
	w.text, w.open = append(w.text, bracket), w.open[:len(w.open)-1]
}

// The methods of [smithy.ShapeSerializer].

func (w *writer) WriteStruct(s *smithy.Schema) { w.enter(s, '{') }
func (w *writer) CloseStruct()                 { w.leave('}') }
func (w *writer) WriteMap(s *smithy.Schema)    { w.enter(s, '{') }
func (w *writer) CloseMap()                    { w.leave('}') }
func (w *writer) WriteList(s *smithy.Schema)   { w.enter(s, '[') }
func (w *writer) CloseList()                   { w.leave(']') }

func (w *writer) WriteUnion(s, variant *smithy.Schema) {
	w.enter(s, '{')
	w.name(variant)
}
func (w *writer) CloseUnion() { w.leave('}') }

func (w *writer) WriteKey(_ *smithy.Schema, key string) {
	w.separate()
	w.quote(key)
	w.text = append(w.text, ':')
}

func (w *writer) WriteString(s *smithy.Schema, v string) {
	w.begin(s)
	w.quote(v)
}

func (w *writer) WriteBool(s *smithy.Schema, v bool) {
	w.begin(s)
	w.text = strconv.AppendBool(w.text, v)
}

func (w *writer) WriteBlob(s *smithy.Schema, v []byte) {
	w.begin(s)
	if v == nil {
		w.text = append(w.text, "null"...)
		return
	}
	w.text = append(base64.StdEncoding.AppendEncode(append(w.text, '"'), v), '"')
}

// quote writes a string.
func (w *writer) quote(s string) {
	w.text = append(w.text, '"')
	written := 0 // s up to here
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if as := escaped(r, size); as != "" {
			w.text = append(append(w.text, s[written:i]...), as...)
			written = i + size
		}
		i += size
	}
	w.text = append(append(w.text, s[written:]...), '"')
}

// plain are the bytes that are written as they are, whatever stands beside them.
var plain = func() (is [256]bool) {
	for b := ' '; b < '\x7f'; b++ {
		is[b] = b != '"' && b != '\\'
	}
	return is
}()

// escaped is how the SDK writes a rune of so many bytes, which is more often than it
// must; "": as it is.
func escaped(r rune, size int) string {
	switch {
	case r == '"', r == '\\':
		return `\` + string(r)
	case r == '\n':
		return `\n`
	case r == '\r':
		return `\r`
	case r == '\t':
		return `\t`
	case r < ' ', r == '\x7f', r == '\u2028', r == '\u2029':
		return fmt.Sprintf(`\u%04x`, r)
	case r == utf8.RuneError && size == 1: // a byte that is none
		return string(utf8.RuneError)
	}
	return ""
}
